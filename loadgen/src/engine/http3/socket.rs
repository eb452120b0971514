//! A UDP socket of one connection: datagrams are sent and received without waiting, several at a
//! time where the kernel can (segmentation and receive offload).

use std::cell::RefCell;
use std::io::{self, IoSliceMut};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use bytes::BytesMut;
use quinn_proto::{EcnCodepoint, Transmit};
use quinn_udp::{RecvMeta, UdpSocketState};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketFlags, SocketType, bind, connect, ipproto, socket_with, sockopt,
};

/// Reads at a time; each may bring many datagrams of a size.
const READS: usize = 8;
/// The longest that a read can bring.
const READ_BYTES: usize = 64 * 1024;
/// What a socket should hold that isn't read yet, where the machine allows so much
/// (net.core.rmem_max): what is beyond is lost, and sent again.
pub const RECEIVE_BUFFER_BYTES: usize = 2 << 20;

thread_local! {
    static INCOMING: RefCell<Vec<u8>> = RefCell::new(vec![0; READS * READ_BYTES]);
}

pub struct Socket {
    fd: OwnedFd,
    state: UdpSocketState,
}

impl Socket {
    /// One that exchanges datagrams with that address alone.
    pub fn open(address: SocketAddr, source: Option<IpAddr>) -> io::Result<Socket> {
        let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let fd = socket_with(family, SocketType::DGRAM, flags, Some(ipproto::UDP))?;
        if let Some(source) = source {
            bind(&fd, &SocketAddr::new(source, 0))?;
        }
        connect(&fd, &address).map_err(|error| match error {
            // No port is left: of UDP the kernel says it so.
            Errno::AGAIN => io::ErrorKind::AddrNotAvailable.into(),
            error => io::Error::from(error),
        })?;
        // The kernel gives as much of it as it may.
        sockopt::set_socket_recv_buffer_size(&fd, RECEIVE_BUFFER_BYTES)?;
        let state = UdpSocketState::new((&fd).into())?;
        Ok(Socket { fd, state })
    }

    /// Datagrams may be cut into pieces on their way.
    pub fn may_fragment(&self) -> bool {
        self.state.may_fragment()
    }

    /// How many datagrams can be sent at once.
    pub fn most_segments(&self) -> usize {
        self.state.max_gso_segments()
    }

    /// Sends; false where there is no room.
    pub fn send(&self, transmit: &Transmit, bytes: &[u8]) -> io::Result<bool> {
        let sent = self.state.try_send(
            (&self.fd).into(),
            &quinn_udp::Transmit {
                destination: transmit.destination,
                ecn: transmit.ecn.and_then(|ecn| quinn_udp::EcnCodepoint::from_bits(ecn as u8)),
                contents: &bytes[..transmit.size],
                segment_size: transmit.segment_size,
                src_ip: transmit.src_ip,
            },
        );
        match sent {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
            // It was to find out how long datagrams may be, or offload failed and is left out from
            // now on: it counts as lost, and is sent again.
            Err(error) if is_about_length(&error) => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// Reads what is there, up to some of it; true where that was all.
    pub fn receive(
        &self,
        mut take: impl FnMut(SocketAddr, Option<EcnCodepoint>, BytesMut),
    ) -> io::Result<bool> {
        INCOMING.with_borrow_mut(|incoming| {
            let mut rooms = incoming.chunks_exact_mut(READ_BYTES).map(IoSliceMut::new);
            let mut rooms: [IoSliceMut<'_>; READS] =
                std::array::from_fn(|_| rooms.next().unwrap_or(IoSliceMut::new(&mut [])));
            let mut about = [RecvMeta::default(); READS];
            let count = match self.state.recv((&self.fd).into(), &mut rooms, &mut about) {
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(true),
                Err(error) => return Err(error),
            };
            for (about, room) in about[..count].iter().zip(&rooms) {
                let ecn = about.ecn.and_then(|ecn| EcnCodepoint::from_bits(ecn as u8));
                for datagram in room[..about.len].chunks(about.stride.max(1)) {
                    take(about.addr, ecn, datagram.into());
                }
            }
            Ok(count < READS)
        })
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

fn is_about_length(error: &io::Error) -> bool {
    const ABOUT: [i32; 3] = [libc::EMSGSIZE, libc::EIO, libc::EINVAL];
    error.raw_os_error().is_some_and(|number| ABOUT.contains(&number))
}
