//! A launcher that was started: the socket to it, and the script's output.

use super::super::wire::{self, Instruction, Profile, Report};
use super::control_group::ControlGroup;
use super::launch_spec::LaunchSpec;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};
use rustix::pipe::{PipeFlags, pipe_with};
use serde::Serialize;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::Stdio;
use std::time::Duration;
use tokio::io::Interest;
use tokio::net::UnixStream;
use tokio::net::unix::pipe::Receiver;
use tokio::process::Child;

/// How long it may take to go once all of the script's processes are dead.
const PATIENCE: Duration = Duration::from_secs(5);
/// The script's stdin, and the files of its control group.
const MOST: usize = 1 + wire::GROUP_FILES.len();

pub(super) struct LauncherProcess {
    /// bubblewrap, or the launcher itself. In a process group of its own: Ctrl-C is the program's business.
    child: Child,
    socket: UnixStream,
    received: Vec<u8>,
    descriptor: Option<OwnedFd>,
}

/// What the script writes.
pub(super) struct Output {
    pub(super) stdout: Receiver,
    pub(super) stderr: Receiver,
}

impl LauncherProcess {
    /// Starts it and sends it its launch request.
    pub(super) async fn start(spec: &mut LaunchSpec, stdin: Option<&OwnedFd>) -> io::Result<(Self, Output)> {
        let flags = SocketFlags::CLOEXEC;
        let (socket, theirs) = socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        let socket = std::os::unix::net::UnixStream::from(socket);
        socket.set_nonblocking(true)?;
        let (stdout, their_stdout) = output()?;
        let (stderr, their_stderr) = output()?;
        let child = spec
            .command
            .env_clear()
            .stdin(Stdio::from(theirs))
            .stdout(Stdio::from(their_stdout))
            .stderr(Stdio::from(their_stderr))
            .process_group(0)
            // Elsewhere it ends the script's processes when the socket closes: killed, it could not.
            .kill_on_drop(spec.launch.profile == Profile::Isolated)
            .spawn()?;
        // The command keeps the ends that the child has; with them the pipes would never end.
        spec.command = tokio::process::Command::new("/nonexistent");
        let socket = UnixStream::from_std(socket)?;
        let mut launcher = Self { child, socket, received: Vec::new(), descriptor: None };
        let group = spec.group.iter().flat_map(ControlGroup::files);
        let descriptors: Vec<BorrowedFd<'_>> = stdin.into_iter().map(AsFd::as_fd).chain(group).collect();
        launcher.send(&spec.launch, &descriptors).await?;
        Ok((launcher, Output { stdout, stderr }))
    }

    /// Sends the next instruction. If the launcher has ended already, its last report says so.
    pub(super) async fn instruct(&mut self, instruction: Instruction) {
        let _ = self.send(&instruction, &[]).await;
    }

    /// The next report, or `None` once the launcher has ended. May be given up and called again.
    pub(super) async fn report(&mut self) -> io::Result<Option<Report>> {
        loop {
            if let Some(report) = wire::take(&mut self.received)? {
                return Ok(Some(report));
            }
            self.socket.readable().await?;
            let mut bytes = [0; 4096];
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
            let mut ancillary = RecvAncillaryBuffer::new(&mut space);
            let result = self.socket.try_io(Interest::READABLE, || {
                let mut parts = [IoSliceMut::new(&mut bytes)];
                Ok(recvmsg(&self.socket, &mut parts, &mut ancillary, RecvFlags::CMSG_CLOEXEC)?.bytes)
            });
            match result {
                Ok(0) => return Ok(None),
                Ok(count) => {
                    self.received.extend(bytes.get(..count).unwrap_or_default());
                    for one in ancillary.drain() {
                        if let RecvAncillaryMessage::ScmRights(descriptors) = one {
                            self.descriptor = descriptors.into_iter().next();
                        }
                    }
                }
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => {}
                    io::ErrorKind::ConnectionReset => return Ok(None),
                    _ => return Err(error),
                },
            }
        }
    }

    /// The descriptor that came with a report.
    pub(super) fn take_descriptor(&mut self) -> Option<OwnedFd> {
        self.descriptor.take()
    }

    /// Waits until the launcher is gone, and with it in a namespace everything else.
    pub(super) async fn wait_for_exit(&mut self) {
        // Somebody else may have taken up its end: then it is gone too. One that was stopped is not waited for.
        if tokio::time::timeout(PATIENCE, self.child.wait()).await.is_err() {
            self.kill();
            let _ = self.child.wait().await;
        }
    }

    /// Kills it where it doesn't answer.
    pub(super) fn kill(&mut self) {
        // It may be gone.
        let _ = self.child.start_kill();
    }

    async fn send(&mut self, message: &impl Serialize, mut descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
        let bytes = wire::framed(message)?;
        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            self.socket.writable().await?;
            let result = self.socket.try_io(Interest::WRITABLE, || {
                let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST))];
                let mut ancillary = SendAncillaryBuffer::new(&mut space);
                if !descriptors.is_empty() {
                    ancillary.push(SendAncillaryMessage::ScmRights(descriptors));
                }
                Ok(sendmsg(&self.socket, &[IoSlice::new(rest)], &mut ancillary, SendFlags::NOSIGNAL)?)
            });
            match result {
                Ok(count) => {
                    rest = rest.get(count..).unwrap_or_default();
                    descriptors = &[];
                }
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

fn output() -> io::Result<(Receiver, OwnedFd)> {
    let (reading, writing) = pipe_with(PipeFlags::CLOEXEC)?;
    rustix::io::ioctl_fionbio(&reading, true)?;
    Ok((Receiver::from_owned_fd(reading)?, writing))
}
