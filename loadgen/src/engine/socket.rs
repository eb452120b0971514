//! Opening sockets.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, connect, ipproto, socket_with,
    sockopt,
};

use crate::target::Address;

/// A socket whose connect has begun.
#[derive(Debug)]
pub struct Opened {
    pub fd: OwnedFd,
    /// It is connected already; otherwise the outcome follows as an event.
    pub connected: bool,
}

/// The receive buffer of a slow reader, so that the server feels it.
pub const SMALL_WINDOW_BYTES: usize = 4096;

/// What is special about a connection.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options {
    /// Address to connect from.
    pub source: Option<IpAddr>,
    /// Size of the receive buffer.
    pub window_bytes: Option<usize>,
    /// Send what doesn't fill a segment at once.
    pub no_delay: bool,
}

/// Begins to connect, without waiting.
pub fn open(address: &Address, options: Options) -> io::Result<Opened> {
    match address {
        Address::Tcp(address) => open_tcp(address, options),
        Address::Unix(path) => {
            let fd = socket(AddressFamily::UNIX, None)?;
            let connected = begin(connect(&fd, &SocketAddrUnix::new(path)?))?;
            Ok(Opened { fd, connected })
        }
    }
}

fn open_tcp(address: &SocketAddr, options: Options) -> io::Result<Opened> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let fd = socket(family, Some(ipproto::TCP))?;
    if options.no_delay {
        sockopt::set_tcp_nodelay(&fd, true)?;
    }
    if let Some(bytes) = options.window_bytes {
        sockopt::set_socket_recv_buffer_size(&fd, bytes)?;
    }
    if let Some(source) = options.source {
        if source.is_ipv4() {
            choose_port_later(&fd)?;
        }
        bind(&fd, &SocketAddr::new(source, 0))?;
    }
    let connected = begin(connect(&fd, address))?;
    Ok(Opened { fd, connected })
}

fn socket(family: AddressFamily, protocol: Option<rustix::net::Protocol>) -> io::Result<OwnedFd> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    Ok(socket_with(family, SocketType::STREAM, flags, protocol)?)
}

/// `IP_BIND_ADDRESS_NO_PORT` (ip(7)): the port is chosen when connecting, so that the same one
/// serves for several destinations.
fn choose_port_later(fd: &OwnedFd) -> io::Result<()> {
    let one: libc::c_int = 1;
    // SAFETY: the option's value is one valid `c_int`.
    let outcome = unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            libc::IPPROTO_IP,
            libc::IP_BIND_ADDRESS_NO_PORT,
            (&raw const one).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    if outcome == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn begin(outcome: Result<(), Errno>) -> io::Result<bool> {
    match outcome {
        Ok(()) => Ok(true),
        Err(Errno::INPROGRESS) => Ok(false),
        Err(error) => Err(error.into()),
    }
}
