//! What a connection is to the protocols above: something to read from and to write to, without
//! waiting. TLS is a filter in it, so that everything above is the same with and without.
//!
//! Whatever leads to `send`, `recv` and `epoll_pwait2` is inlined always: entering the kernel empties
//! the CPU's stack of return addresses, so that each return on the way back is mispredicted. That
//! was 5 % of the client's CPU time (`bench/peers.py --cases small --peers loadgen,loadgen-before`).

use std::io;
use std::mem::MaybeUninit;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType, bind, connect,
    getpeername, getsockname, ipproto, recv, send, socket_with, sockopt,
};

use super::receive_time;
use super::secure::Secure;
use super::socket::{Got, is_none, receive};
use crate::target::Address;

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
    /// The kernel keeps the time when bytes arrived.
    pub stamped: bool,
}

#[derive(Debug)]
pub struct Wire {
    fd: OwnedFd,
    tls: Option<Box<Secure>>,
    /// The kernel can drop what arrives unread.
    pub can_drop: bool,
    stamped: bool,
    /// When the last bytes that were read had arrived; 0 where the kernel doesn't report it.
    pub arrived_ns: u64,
}

impl Wire {
    /// Begins to connect; returns whether that is done already. Otherwise the outcome follows as an
    /// event.
    pub fn open(address: &Address, options: Options) -> io::Result<(Wire, bool)> {
        match address {
            Address::Tcp(address) => open_tcp(address, options),
            Address::Unix(path, uid) => {
                let fd = socket(AddressFamily::UNIX, None)?;
                let connected = begin(connect(&fd, &SocketAddrUnix::new(path)?))?;
                refuse_others(&fd, *uid)?;
                Ok((
                    Wire { fd, tls: None, can_drop: false, stamped: false, arrived_ns: 0 },
                    connected,
                ))
            }
        }
    }

    /// Everything from here on goes through TLS.
    pub fn secure(&mut self, tls: Secure) {
        self.tls = Some(Box::new(tls));
        self.can_drop = false;
    }

    /// The outcome of connecting.
    pub fn connected(&self) -> io::Result<()> {
        sockopt::socket_error(&self.fd)??;
        Ok(())
    }

    /// Nobody listens, and the kernel chose the very port that we connect to as our own: TCP lets a
    /// socket meet itself (RFC 9293 section 3.5), which also keeps the server from its port.
    pub fn has_met_itself(&self) -> bool {
        let (own, other) = (getsockname(&self.fd), getpeername(&self.fd));
        matches!((own, other), (Ok(own), Ok(Some(other))) if own == other)
    }

    /// Goes on with the TLS handshake; true when it is done, at once where there is no TLS.
    pub fn handshake(&mut self) -> io::Result<bool> {
        self.tls.as_mut().map_or(Ok(true), |tls| tls.handshake(&self.fd))
    }

    /// After a handshake: what the server chose to speak, and whether a session was resumed.
    pub fn agreed(&self) -> Option<(Option<&[u8]>, bool)> {
        Some(self.tls.as_ref()?.agreed())
    }

    /// After a handshake: what TLS agreed upon, as `TLSv1.3, TLS_AES_256_GCM_SHA384`.
    pub fn version_and_cipher(&self) -> Option<String> {
        self.tls.as_ref()?.version_and_cipher()
    }

    /// Writes as much as fits; how much was taken. An error means that nothing of it has left.
    #[inline(always)]
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(tls) = &mut self.tls else {
            return match send(&self.fd, bytes, SendFlags::NOSIGNAL) {
                Err(Errno::AGAIN | Errno::INTR) => Ok(0),
                outcome => Ok(outcome?),
            };
        };
        tls.write(&self.fd, bytes)
    }

    /// Writes what waits in the TLS layer; true when nothing waits.
    pub fn flush(&mut self) -> io::Result<bool> {
        self.tls.as_mut().map_or(Ok(true), |tls| tls.flush(&self.fd))
    }

    /// Everything that was taken to be written has left.
    pub fn is_flushed(&self) -> bool {
        self.tls.as_ref().is_none_or(|tls| tls.is_flushed())
    }

    /// Reads once. `flags` are for wires that can drop.
    #[inline(always)]
    pub fn read(&mut self, buffer: &mut [u8], flags: RecvFlags) -> io::Result<Got> {
        if let Some(tls) = &mut self.tls {
            let got = tls.read(&self.fd, buffer, self.stamped);
            self.arrived_ns = tls.arrived_ns;
            return got;
        }
        let (count, arrived_ns) = match receive(&self.fd, buffer, flags, self.stamped) {
            Err(error) if is_none(&error) => return Ok(Got::Nothing),
            outcome => outcome?,
        };
        self.arrived_ns = arrived_ns;
        Ok(match count {
            0 => Got::End { cut: false },
            count => Got::Bytes { count, drained: count < buffer.len() },
        })
    }

    /// Drops bytes that were looked at before (`MSG_PEEK`), on a wire that can; how many.
    pub fn drop_seen(&self, room: &mut [u8]) -> Option<usize> {
        let (_, count) = recv(&self.fd, room, RecvFlags::TRUNC).ok()?;
        (count > 0).then_some(count)
    }

    /// TCP segments with data that have come so far.
    pub fn segments_in(&self) -> Option<u32> {
        let mut info = MaybeUninit::<libc::tcp_info>::zeroed();
        let mut bytes = size_of_val(&info) as libc::socklen_t;
        // SAFETY: the kernel fills in at most `bytes` of it; all-zero is valid too.
        let (outcome, info) = unsafe {
            let into = info.as_mut_ptr().cast();
            let outcome = libc::getsockopt(
                self.fd.as_raw_fd(),
                libc::IPPROTO_TCP,
                libc::TCP_INFO,
                into,
                &raw mut bytes,
            );
            (outcome, info.assume_init())
        };
        (outcome == 0).then_some(info.tcpi_data_segs_in)
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        if let Some(tls) = &mut self.tls {
            tls.close(&self.fd);
        }
    }
}

impl AsFd for Wire {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

fn open_tcp(address: &SocketAddr, options: Options) -> io::Result<(Wire, bool)> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let fd = socket(family, Some(ipproto::TCP))?;
    if options.no_delay {
        sockopt::set_tcp_nodelay(&fd, true)?;
    }
    if options.stamped {
        receive_time::keep_times(&fd)?;
    }
    if let Some(bytes) = options.window_bytes {
        sockopt::set_socket_recv_buffer_size(&fd, bytes)?;
    }
    if let Some(source) = options.source {
        choose_port_later(&fd)?;
        bind(&fd, &SocketAddr::new(source, 0))?;
    }
    let connected = begin(connect(&fd, address))?;
    let stamped = options.stamped;
    Ok((Wire { fd, tls: None, can_drop: true, stamped, arrived_ns: 0 }, connected))
}

fn socket(family: AddressFamily, protocol: Option<rustix::net::Protocol>) -> io::Result<OwnedFd> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    Ok(socket_with(family, SocketType::STREAM, flags, protocol)?)
}

/// `IP_BIND_ADDRESS_NO_PORT` (ip(7), which holds for IPv6 as well): the port is chosen when connecting, so that the same one
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

/// Whoever may write where a socket lies can put a link there to a socket of somebody who listens
/// to us alone: nothing is said to that one.
fn refuse_others(fd: &OwnedFd, uid: Option<u32>) -> io::Result<()> {
    let Some(uid) = uid else { return Ok(()) };
    match sockopt::socket_peercred(fd)?.uid.as_raw() == uid {
        true => Ok(()),
        false => Err(io::Error::new(io::ErrorKind::PermissionDenied, "another user listens there")),
    }
}

fn begin(outcome: Result<(), Errno>) -> io::Result<bool> {
    match outcome {
        Ok(()) => Ok(true),
        Err(Errno::INPROGRESS) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_said_to_another_user_behind_a_socket() {
        let path = std::env::temp_dir().join(format!("loadgen-whose-{}.sock", std::process::id()));
        let _listener = std::os::unix::net::UnixListener::bind(&path).expect("a socket");
        let own = rustix::process::geteuid().as_raw();
        let open = |uid| Wire::open(&Address::Unix(path.clone(), uid), Options::default());
        assert!(open(None).is_ok() && open(Some(own)).is_ok());
        let refused = open(Some(own + 1)).expect_err("of another user");
        assert_eq!(refused.kind(), io::ErrorKind::PermissionDenied);
        std::fs::remove_file(path).expect("there");
    }

    #[test]
    fn a_socket_that_met_itself_is_known() {
        let fd = socket(AddressFamily::INET, Some(ipproto::TCP)).expect("a socket");
        bind(&fd, &SocketAddr::from(([127, 0, 0, 1], 0))).expect("a port");
        let own = getsockname(&fd).expect("an address");
        let own = SocketAddr::try_from(own).expect("of TCP");
        let wire = |fd| Wire { fd, tls: None, can_drop: true, stamped: false, arrived_ns: 0 };
        begin(connect(&fd, &own)).expect("itself");
        assert!(wire(fd).has_met_itself());

        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = Address::Tcp(listener.local_addr().expect("an address"));
        let (other, _) = Wire::open(&address, Options::default()).expect("a connection");
        assert!(!other.has_met_itself());
    }
}
