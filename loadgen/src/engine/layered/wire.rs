//! What a connection is to the layers above it: something to read from and to write to.

use std::future::poll_fn;
use std::io;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};

use crate::target::Address;

pub trait Duplex: AsyncRead + AsyncWrite + Unpin {}

impl<T: AsyncRead + AsyncWrite + Unpin> Duplex for T {}

pub type Wire = Box<dyn Duplex>;

/// Waits until a socket whose connect has begun is connected.
pub async fn connected(fd: OwnedFd, address: &Address) -> io::Result<Wire> {
    match address {
        Address::Tcp(_) => {
            let stream = TcpStream::from_std(fd.into())?;
            stream.writable().await?;
            stream.take_error()?.map_or(Ok(Box::new(stream) as Wire), Err)
        }
        Address::Unix(_) => {
            let stream = UnixStream::from_std(fd.into())?;
            stream.writable().await?;
            stream.take_error()?.map_or(Ok(Box::new(stream) as Wire), Err)
        }
    }
}

/// Reads once; 0 is the end.
pub fn poll_read(
    wire: &mut Wire,
    cx: &mut Context<'_>,
    buffer: &mut [u8],
) -> Poll<io::Result<usize>> {
    let mut buffer = ReadBuf::new(buffer);
    Pin::new(wire).poll_read(cx, &mut buffer).map_ok(|()| buffer.filled().len())
}

/// Nothing has come that nobody asked for, and the other side has not closed.
pub async fn is_quiet(wire: &mut Wire) -> bool {
    let mut byte = [0; 1];
    poll_fn(|cx| Poll::Ready(poll_read(wire, cx, &mut byte).is_pending())).await
}
