//! The wire below HTTP/2: what the library reads from and writes to, without waiting.

use std::cell::Cell;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use rustix::net::RecvFlags;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::engine::socket::Got;
use crate::engine::wire::Wire;

/// What is known of a wire without asking the kernel.
#[derive(Debug, Default)]
pub struct Readiness {
    /// Nothing more is there until an event says so.
    drained: Cell<bool>,
    /// The other side closed: whatever is left is read to the end.
    hangup: Cell<bool>,
    /// Bytes that may still be read before it is the others' turn.
    pub left: Cell<usize>,
    pub arrived_ns: Cell<u64>,
}

impl Readiness {
    /// There may be more to read; `hangup`: and that is the last of it.
    pub fn more_arrived(&self, hangup: bool) {
        self.drained.set(false);
        self.hangup.set(self.hangup.get() | hangup);
    }
}

/// A wire as the library wants it.
pub struct Io {
    pub wire: Wire,
    pub readiness: Rc<Readiness>,
}

impl AsyncRead for Io {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let readiness = Rc::clone(&self.readiness);
        if readiness.drained.get() || readiness.left.get() == 0 {
            return Poll::Pending;
        }
        match self.wire.read(buffer.initialize_unfilled(), RecvFlags::empty())? {
            Got::Nothing => {
                readiness.drained.set(true);
                return Poll::Pending;
            }
            Got::Bytes { count, drained } => {
                readiness.drained.set(drained && !readiness.hangup.get());
                readiness.left.set(readiness.left.get().saturating_sub(count));
                readiness.arrived_ns.set(self.wire.arrived_ns);
                buffer.advance(count);
            }
            Got::End { .. } => {}
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Io {
    fn poll_write(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.wire.write(bytes)? {
            0 => Poll::Pending,
            count => Poll::Ready(Ok(count)),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.wire.flush()? { Poll::Ready(Ok(())) } else { Poll::Pending }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_flush(cx)
    }
}
