//! Reading from a socket that nobody waits for.

use std::io;
use std::os::fd::OwnedFd;

use rustix::net::{RecvFlags, recv};

use super::receive_time;

/// What a read brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Got {
    Nothing,
    /// `drained`: nothing more is there now.
    Bytes {
        count: usize,
        drained: bool,
    },
    /// The other side closed; with TLS it may have failed to say so (`cut`), so that what came
    /// may not be all.
    End {
        cut: bool,
    },
}

/// Reads once; with when the last bytes had arrived, 0 where the kernel doesn't report it.
#[inline(always)]
pub fn receive(
    fd: &OwnedFd,
    buffer: &mut [u8],
    flags: RecvFlags,
    stamped: bool,
) -> io::Result<(usize, u64)> {
    if stamped {
        let (count, arrived_ns) = receive_time::receive(fd, buffer, flags)?;
        return Ok((count, arrived_ns.unwrap_or(0)));
    }
    Ok((recv(fd, buffer, flags)?.1, 0))
}

/// Nothing is there to be read yet.
pub fn is_none(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}
