//! When bytes arrived, by the kernel's account: a server that was kept from its processor has no
//! other way to know how long they have lain in its socket.

use std::io;
use std::mem::size_of_val;
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd;

use rustix::time::{ClockId, clock_gettime};

pub const NS_PER_S: u64 = 1_000_000_000;

/// Makes the kernel keep the time of arrival (`SO_TIMESTAMPNS`, socket(7)) on all connections that
/// this listener accepts from now on: they inherit it.
pub fn keep_times(listener: &TcpListener) -> io::Result<()> {
    let one: libc::c_int = 1;
    // SAFETY: the option's value is one valid `c_int`.
    let outcome = unsafe {
        libc::setsockopt(
            listener.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_TIMESTAMPNS,
            (&raw const one).cast(),
            size_of_val(&one) as libc::socklen_t,
        )
    };
    if outcome == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Reads what is there; gives the number of bytes, and when the last of them arrived by the
/// monotonic clock. (Without a stamp, as at the end of a connection, that is now.)
pub fn receive(socket: &TcpStream, bytes: &mut [u8]) -> io::Result<(usize, u64)> {
    let mut part = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    // Words, because the header that the kernel writes there has to be aligned.
    let mut control = [0_u64; 16];
    // SAFETY: all fields are numbers or pointers, for which zero is valid.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = size_of_val(&control);
    // SAFETY: `message` names a buffer and a control area that live until the end, with their sizes.
    let got = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, libc::MSG_DONTWAIT) };
    let got = usize::try_from(got).map_err(|_| io::Error::last_os_error())?;
    let now_ns = now_ns();
    // The stamp is of the other clock, whose zero moves; only differences of it mean something.
    let age_ns = stamp_ns(&message)
        .map_or(0, |stamp_ns| clock_ns(ClockId::Realtime).saturating_sub(stamp_ns));
    Ok((got, now_ns - age_ns.min(now_ns)))
}

/// The time that the kernel put beside the bytes, by the real-time clock.
fn stamp_ns(message: &libc::msghdr) -> Option<u64> {
    // SAFETY: the kernel has filled in the control area of `message`, which is still alive.
    let header = unsafe { libc::CMSG_FIRSTHDR(message).as_ref() }?;
    if (header.cmsg_level, header.cmsg_type) != (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) {
        return None;
    }
    // SAFETY: this kind of message holds a `timespec` (socket(7)), aligned or not.
    let stamp = unsafe { libc::CMSG_DATA(header).cast::<libc::timespec>().read_unaligned() };
    Some(stamp.tv_sec as u64 * NS_PER_S + stamp.tv_nsec as u64)
}

/// The monotonic clock, which every process of the machine reads alike.
pub fn now_ns() -> u64 {
    clock_ns(ClockId::Monotonic)
}

fn clock_ns(clock: ClockId) -> u64 {
    let now = clock_gettime(clock);
    now.tv_sec as u64 * NS_PER_S + now.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::Ipv4Addr;
    use std::thread::sleep;
    use std::time::Duration;

    use super::*;

    #[test]
    fn bytes_that_lay_around_arrived_when_they_were_sent() {
        let (mut client, server) = connection();
        let mut stamped_right = || {
            let before_ns = now_ns();
            client.write_all(b"hello").expect("room");
            let sent_ns = now_ns();
            sleep(Duration::from_millis(20));
            let mut bytes = [0; 16];
            let (got, arrived_ns) = receive(&server, &mut bytes).expect("bytes");
            assert_eq!(&bytes[..got], b"hello");
            // Two clocks are read, one after the other.
            (before_ns - 1_000_000..sent_ns + 1_000_000).contains(&arrived_ns)
        };
        // The kernel begins to stamp a little after it was asked to.
        assert!((0..50).any(|_| stamped_right()));
    }

    #[test]
    fn nothing_there_is_not_the_end() {
        let (client, server) = connection();
        let found = receive(&server, &mut [0; 16]).expect_err("nothing was sent");
        assert_eq!(found.kind(), io::ErrorKind::WouldBlock);
        drop(client);
        assert_eq!(receive(&server, &mut [0; 16]).expect("the end").0, 0);
    }

    fn connection() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        keep_times(&listener).expect("the kernel's times");
        let client = TcpStream::connect(listener.local_addr().expect("an address"));
        let (server, _) = listener.accept().expect("its other end");
        (client.expect("a connection"), server)
    }
}
