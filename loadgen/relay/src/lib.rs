//! A cable with a delay and with losses: what comes in at one network interface leaves at another
//! some time later. For kernels without netem. It shares nothing with the engine.

use std::collections::VecDeque;
use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use rustix::thread::set_current_timer_slack;
use rustix::time::{ClockId, Timespec, clock_gettime};

/// What happens to each packet on its way, in either direction.
#[derive(Debug, Clone, Copy)]
pub struct Cable {
    pub delay_ns: u64,
    /// Share of packets that get lost, 0 to 1.
    pub loss: f64,
}

const SECOND_NS: u64 = 1_000_000_000;

fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * SECOND_NS + now.tv_nsec as u64
}

fn timespec(ns: u64) -> Timespec {
    Timespec { tv_sec: (ns / SECOND_NS) as i64, tv_nsec: (ns % SECOND_NS) as i64 }
}

/// Packets looked at on one side before the other side's turn.
const BATCH: usize = 64;

/// Both ends of a cable, ready to carry.
#[derive(Debug)]
pub struct Relay {
    ports: [Port; 2],
    /// `lines[n]` begins at `ports[n]`.
    lines: [Line; 2],
    buffer: Vec<u8>,
}

impl Relay {
    /// Takes hold of two interfaces of this network namespace.
    pub fn between(first: &str, second: &str, cable: Cable) -> io::Result<Relay> {
        Ok(Relay {
            ports: [Port::open(first)?, Port::open(second)?],
            lines: [Line::new(cable), Line::new(cable)],
            buffer: vec![0; LARGEST_BYTES],
        })
    }

    /// Carries packets until an interface goes away.
    pub fn run(mut self) -> io::Result<()> {
        // It only makes the delay more exact, so failing is no error.
        let _ = set_current_timer_slack(std::num::NonZeroU64::new(1));
        loop {
            self.wait()?;
            for from in 0..2 {
                self.take_in(from)?;
                self.let_out(from)?;
            }
        }
    }

    fn wait(&self) -> io::Result<()> {
        let next_ns = self.lines.iter().filter_map(Line::next_due_ns).min();
        let timeout = next_ns.map(|due_ns| timespec(due_ns.saturating_sub(now_ns())));
        let mut ends = self.ports.each_ref().map(|port| PollFd::new(port, PollFlags::IN));
        match poll(&mut ends, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn take_in(&mut self, from: usize) -> io::Result<()> {
        for _ in 0..BATCH {
            let Some(bytes) = self.ports[from].receive(&mut self.buffer)? else { break };
            self.lines[from].put(&self.buffer[..bytes], now_ns());
        }
        Ok(())
    }

    fn let_out(&mut self, from: usize) -> io::Result<()> {
        while let Some(packet) = self.lines[from].take(now_ns()) {
            self.ports[1 - from].send(&packet)?;
        }
        Ok(())
    }
}

/// More than this many bytes aren't kept under way: what comes then is lost, as in a full router.
const MOST_BYTES: usize = 256 << 20;

/// One direction of the cable: packets leave in the order in which they came, a delay later.
#[derive(Debug)]
struct Line {
    cable: Cable,
    /// When each is due at the far end, and its bytes.
    under_way: VecDeque<(u64, Box<[u8]>)>,
    bytes: usize,
}

impl Line {
    fn new(cable: Cable) -> Line {
        Line { cable, under_way: VecDeque::new(), bytes: 0 }
    }

    /// Sends a packet on its way, unless it gets lost.
    fn put(&mut self, packet: &[u8], now_ns: u64) {
        if fastrand::f64() < self.cable.loss || self.bytes + packet.len() > MOST_BYTES {
            return;
        }
        self.bytes += packet.len();
        self.under_way.push_back((now_ns + self.cable.delay_ns, packet.into()));
    }

    /// Gives the next packet that has arrived by now.
    fn take(&mut self, now_ns: u64) -> Option<Box<[u8]>> {
        if self.next_due_ns()? > now_ns {
            return None;
        }
        let (_, packet) = self.under_way.pop_front()?;
        self.bytes -= packet.len();
        Some(packet)
    }

    fn next_due_ns(&self) -> Option<u64> {
        self.under_way.front().map(|(due_ns, _)| *due_ns)
    }
}

/// A packet as large as the kernel makes them where the network card would split it (65 535
/// bytes), the Ethernet header, and the kernel's notes on it (`virtio_net_hdr`).
const LARGEST_BYTES: usize = 65_536 + 64;

/// How many bytes may wait to be read.
const WAITING_BYTES: libc::c_int = 32 << 20;

/// A network interface that whole packets are read from and written to: packet(7).
#[derive(Debug)]
struct Port {
    socket: OwnedFd,
}

impl AsFd for Port {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Port {
    fn open(interface: &str) -> io::Result<Port> {
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
    fn receive(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        match recv(self, buffer, RecvFlags::DONTWAIT) {
            Ok((_, bytes)) => Ok(Some(bytes)),
            Err(Errno::AGAIN | Errno::INTR) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Writes a packet. One that the interface doesn't take at this moment is lost, as on a cable.
    fn send(&self, packet: &[u8]) -> io::Result<()> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_arrive_in_order_and_not_early() {
        let mut line = Line::new(Cable { delay_ns: 100, loss: 0.0 });
        assert_eq!(line.next_due_ns(), None);
        line.put(b"one", 0);
        line.put(b"two", 50);
        assert_eq!(line.next_due_ns(), Some(100));
        assert_eq!(line.take(99), None);
        assert_eq!(line.take(149).as_deref(), Some(&b"one"[..]));
        assert_eq!(line.take(149), None);
        assert_eq!(line.take(150).as_deref(), Some(&b"two"[..]));
        assert_eq!((line.take(1_000), line.bytes), (None, 0));
    }

    #[test]
    fn the_share_that_gets_lost_is_as_asked() {
        fastrand::seed(7);
        let mut line = Line::new(Cable { delay_ns: 0, loss: 0.25 });
        (0..100_000).for_each(|_| line.put(b"x", 0));
        let arrived = line.under_way.len();
        // Six standard deviations either way.
        assert!((74_000..76_000).contains(&arrived), "{arrived}");
    }

    #[test]
    fn a_full_cable_loses_what_comes_on_top() {
        let mut line = Line::new(Cable { delay_ns: 1, loss: 0.0 });
        let packet = vec![0; MOST_BYTES / 4];
        (0..5).for_each(|_| line.put(&packet, 0));
        assert_eq!(line.under_way.len(), 4);
    }
}
