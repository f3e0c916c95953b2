//! Two ends: the one makes the other readable, which an event loop watches. No thread that rings runs Python.

use std::io::{self, Read, Write};

#[cfg(unix)]
type Socket = std::os::unix::net::UnixStream;
#[cfg(windows)]
type Socket = std::net::TcpStream;

/// The end that rings.
#[derive(Debug)]
pub(crate) struct Signal {
    writing: Socket,
}

/// The end that is watched.
#[derive(Debug)]
pub(crate) struct Signalled {
    reading: Socket,
}

/// Both ends.
///
/// # Errors
/// The system has no descriptor left.
pub(crate) fn pair() -> io::Result<(Signal, Signalled)> {
    let (writing, reading) = sockets()?;
    writing.set_nonblocking(true)?;
    reading.set_nonblocking(true)?;
    Ok((Signal { writing }, Signalled { reading }))
}

#[cfg(unix)]
fn sockets() -> io::Result<(Socket, Socket)> {
    Socket::pair()
}

/// Windows has no such pair, and its event loops watch nothing but sockets.
#[cfg(windows)]
fn sockets() -> io::Result<(Socket, Socket)> {
    let listener = std::net::TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, 0))?;
    let writing = Socket::connect(listener.local_addr()?)?;
    let ours = writing.local_addr()?;
    loop {
        let (reading, caller) = listener.accept()?;
        // Any program of this machine can call.
        if caller == ours {
            writing.set_nodelay(true)?;
            return Ok((writing, reading));
        }
    }
}

impl Signal {
    /// Makes the other end readable.
    pub(crate) fn ring(&self) {
        // Where the socket is full, it has been readable for long.
        let _ = (&self.writing).write(&[0]);
    }
}

impl Signalled {
    /// The descriptor to watch, or on Windows the socket.
    #[cfg(unix)]
    pub(crate) fn descriptor(&self) -> i64 {
        std::os::fd::AsRawFd::as_raw_fd(&self.reading).into()
    }

    #[cfg(windows)]
    pub(crate) fn descriptor(&self) -> i64 {
        std::os::windows::io::AsRawSocket::as_raw_socket(&self.reading).cast_signed()
    }

    /// Takes what was rung: it is quiet until the next time.
    pub(crate) fn drain(&self) {
        let mut bytes = [0; 64];
        while (&self.reading).read(&mut bytes).is_ok_and(|count| count == bytes.len()) {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rung_often_and_drained() {
        let (signal, signalled) = pair().unwrap();
        // Far more than fits: it never waits.
        for _ in 0..100_000 {
            signal.ring();
        }
        signalled.drain();
        let mut byte = [0];
        if cfg!(unix) {
            // Over TCP some may still be on their way.
            let quiet = (&signalled.reading).read(&mut byte).unwrap_err();
            assert_eq!(quiet.kind(), io::ErrorKind::WouldBlock);
        }
        signal.ring();
        signalled.reading.set_nonblocking(false).unwrap();
        assert_eq!((&signalled.reading).read(&mut byte).unwrap(), 1);
    }
}
