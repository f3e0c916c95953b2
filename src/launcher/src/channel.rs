//! The socket to the runner.

use crate::setup_error::{At, SetupError};
use crate::wire::{self, Instruction, LaunchRequest, Report};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::{Errno, fcntl_dupfd_cloexec};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

const STAGE: &str = "the socket to the runner";
/// The script's stdin, and the files of its control group.
const MOST: usize = 1 + wire::GROUP_FILES.len();

pub(crate) struct Channel {
    socket: OwnedFd,
    received: Vec<u8>,
    closed: bool,
}

impl Channel {
    /// Takes stdin over, so that the script can have another one. All that was handed down besides is closed.
    pub(crate) fn of_stdin() -> Result<Self, SetupError> {
        // Not by the C library: a glibc of before 2.34 has no function for it.
        // SAFETY: nothing has opened a descriptor yet but the three standard ones.
        if unsafe { libc::syscall(libc::SYS_close_range, 3_u32, libc::c_uint::MAX, 0_u32) } != 0 {
            return Err(SetupError::last("closing descriptors"));
        }
        let socket = fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3).at(STAGE)?;
        rustix::net::sockopt::socket_domain(&socket).at(STAGE)?;
        let flags = fcntl_getfl(&socket).at(STAGE)?;
        fcntl_setfl(&socket, flags - OFlags::NONBLOCK).at(STAGE)?;
        Ok(Self { socket, received: Vec::new(), closed: false })
    }

    /// What is to be done, and the descriptors that came with it.
    pub(crate) fn request(&mut self) -> Result<(LaunchRequest, Vec<OwnedFd>), SetupError> {
        let mut descriptors = Vec::new();
        loop {
            if let Some(request) = wire::take(&mut self.received).at("the order")? {
                return Ok((request, descriptors));
            }
            if !self.receive(&mut descriptors, RecvFlags::empty())? {
                return Err(SetupError::new(STAGE, "it was closed before the order came"));
            }
        }
    }

    /// The instructions that have come, without waiting. `Stop` once the runner is gone.
    pub(crate) fn instructions(&mut self) -> Result<Vec<Instruction>, SetupError> {
        let mut found = Vec::new();
        let is_open = self.receive(&mut Vec::new(), RecvFlags::DONTWAIT)?;
        while let Some(instruction) = wire::take(&mut self.received).at(STAGE)? {
            found.push(instruction);
        }
        if !is_open {
            self.closed = true;
            found.push(Instruction::Stop);
        }
        Ok(found)
    }

    /// Whether the runner was found gone.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed
    }

    pub(crate) fn send(&mut self, report: &Report, descriptor: Option<&OwnedFd>) -> Result<(), SetupError> {
        let bytes = wire::framed(report).at(STAGE)?;
        let descriptors: Vec<BorrowedFd<'_>> = descriptor.iter().map(|one| one.as_fd()).collect();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        if !descriptors.is_empty() {
            ancillary.push(SendAncillaryMessage::ScmRights(&descriptors));
        }
        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            match sendmsg(&self.socket, &[IoSlice::new(rest)], &mut ancillary, SendFlags::NOSIGNAL) {
                Ok(count) => rest = rest.get(count..).unwrap_or_default(),
                Err(Errno::INTR) => continue,
                Err(errno) => return Err(errno).at(STAGE),
            }
            ancillary.clear();
        }
        Ok(())
    }

    /// Returns whether the other side is still there.
    fn receive(&mut self, descriptors: &mut Vec<OwnedFd>, flags: RecvFlags) -> Result<bool, SetupError> {
        let mut bytes = [0; 16_384];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let flags = flags | RecvFlags::CMSG_CLOEXEC;
        let message = match recvmsg(&self.socket, &mut [IoSliceMut::new(&mut bytes)], &mut ancillary, flags) {
            Ok(message) => message,
            Err(Errno::AGAIN | Errno::INTR) => return Ok(true),
            Err(Errno::CONNRESET) => return Ok(false),
            Err(errno) => return Err(errno).at(STAGE),
        };
        if message.flags.contains(ReturnFlags::CTRUNC) {
            return Err(SetupError::new(STAGE, "too many descriptors came"));
        }
        for one in ancillary.drain() {
            if let RecvAncillaryMessage::ScmRights(received) = one {
                descriptors.extend(received);
            }
        }
        self.received.extend(bytes.get(..message.bytes).unwrap_or_default());
        Ok(message.bytes > 0)
    }
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
