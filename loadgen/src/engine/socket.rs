//! Opening sockets.

use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, ipproto, socket_with, sockopt,
};

use crate::target::Address;

/// A socket whose connect has begun.
#[derive(Debug)]
pub struct Opened {
    pub fd: OwnedFd,
    /// It is connected already; otherwise the outcome follows as an event.
    pub connected: bool,
}

/// Begins to connect, without waiting.
pub fn open(address: &Address) -> io::Result<Opened> {
    match address {
        Address::Tcp(address) => open_tcp(address),
        Address::Unix(path) => {
            let fd = socket(AddressFamily::UNIX, None)?;
            let connected = begin(connect(&fd, &SocketAddrUnix::new(path)?))?;
            Ok(Opened { fd, connected })
        }
    }
}

fn open_tcp(address: &SocketAddr) -> io::Result<Opened> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let fd = socket(family, Some(ipproto::TCP))?;
    sockopt::set_tcp_nodelay(&fd, true)?;
    let connected = begin(connect(&fd, address))?;
    Ok(Opened { fd, connected })
}

fn socket(family: AddressFamily, protocol: Option<rustix::net::Protocol>) -> io::Result<OwnedFd> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    Ok(socket_with(family, SocketType::STREAM, flags, protocol)?)
}

fn begin(outcome: Result<(), Errno>) -> io::Result<bool> {
    match outcome {
        Ok(()) => Ok(true),
        Err(Errno::INPROGRESS) => Ok(false),
        Err(error) => Err(error.into()),
    }
}
