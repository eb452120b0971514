//! A network interface that whole packets are read from and written to: packet(7).

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};

/// A packet as large as the kernel makes them where the network card would split it (65 535
/// bytes), the Ethernet header, and the kernel's notes on it (`virtio_net_hdr`).
pub const LARGEST_BYTES: usize = 65_536 + 64;

/// How many bytes may wait to be read.
const WAITING_BYTES: libc::c_int = 32 << 20;

#[derive(Debug)]
pub struct Port {
    socket: OwnedFd,
}

impl AsFd for Port {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Port {
    pub fn open(interface: &str) -> io::Result<Port> {
        let name = CString::new(interface)?;
        // SAFETY: the name is a valid C string.
        let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
        if index == 0 {
            return Err(io::Error::last_os_error());
        }
        let port = Port { socket: packet_socket()? };
        // Unfinished checksums and packets still to be split are carried on as they are.
        port.set(libc::SOL_PACKET, libc::PACKET_VNET_HDR, 1)?;
        port.set(libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, 1)?;
        // As much as this user may have: more only makes losses by a late relay rarer.
        if port.set(libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, WAITING_BYTES).is_err() {
            let _ = port.set(libc::SOL_SOCKET, libc::SO_RCVBUF, WAITING_BYTES);
        }
        port.bind(index)?;
        Ok(port)
    }

    /// Reads a packet; gives its length, or nothing when none waits.
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        match recv(self, buffer, RecvFlags::DONTWAIT) {
            Ok((_, bytes)) => Ok(Some(bytes)),
            Err(Errno::AGAIN | Errno::INTR) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Writes a packet. One that the interface doesn't take at this moment is lost, as on a cable.
    pub fn send(&self, packet: &[u8]) -> io::Result<()> {
        match send(self, packet, SendFlags::empty()) {
            Ok(_) | Err(Errno::NOBUFS | Errno::AGAIN | Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn set(&self, level: libc::c_int, option: libc::c_int, value: libc::c_int) -> io::Result<()> {
        // SAFETY: the option's value is one valid `c_int`.
        let outcome = unsafe {
            libc::setsockopt(
                self.socket.as_raw_fd(),
                level,
                option,
                (&raw const value).cast(),
                size_of::<libc::c_int>() as libc::socklen_t,
            )
        };
        if outcome == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// From here on the socket receives all that comes in at the interface.
    fn bind(&self, index: libc::c_uint) -> io::Result<()> {
        // SAFETY: all bytes zero is a valid value of this plain structure.
        let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
        address.sll_ifindex = index as i32;
        // SAFETY: the address is valid and as long as told.
        let outcome = unsafe {
            libc::bind(
                self.socket.as_raw_fd(),
                (&raw const address).cast(),
                size_of::<libc::sockaddr_ll>() as libc::socklen_t,
            )
        };
        if outcome == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}

/// A socket that doesn't receive anything yet.
fn packet_socket() -> io::Result<OwnedFd> {
    // SAFETY: a plain system call; the descriptor is checked before it is owned.
    let descriptor =
        unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is open and nobody else's.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}
