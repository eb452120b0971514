//! When bytes arrived, by the kernel's account: who looks only now and then, or was kept from the
//! CPU, has no other way to know how long they have lain in a socket.

use std::io;
use std::mem::size_of_val;
use std::os::fd::{AsFd, AsRawFd};

use rustix::net::RecvFlags;
use rustix::time::Timespec;

use crate::clock::when_it_was;

/// Makes the kernel keep the time of arrival (`SO_TIMESTAMPNS`, socket(7)) on a socket, or on all
/// connections that a listener accepts from now on: they inherit it.
pub fn keep_times(socket: impl AsFd) -> io::Result<()> {
    let one: libc::c_int = 1;
    // SAFETY: the option's value is one valid `c_int`.
    let outcome = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_TIMESTAMPNS,
            (&raw const one).cast(),
            size_of_val(&one) as libc::socklen_t,
        )
    };
    if outcome == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Reads what is there; gives the number of bytes, and when the last of them arrived by the
/// monotonic clock. It isn't known at the end of a connection, for a segment of which some is left,
/// just after the kernel was asked to keep times, and when the real-time clock has been set.
pub fn receive(
    socket: impl AsFd,
    bytes: &mut [u8],
    flags: RecvFlags,
) -> io::Result<(usize, Option<u64>)> {
    let mut part = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    // Words, because the header that the kernel writes there has to be aligned.
    let mut control = [0_u64; 16];
    // SAFETY: all fields are numbers or pointers, for which zero is valid.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = size_of_val(&control);
    let (fd, flags) = (socket.as_fd().as_raw_fd(), flags.bits() as libc::c_int);
    // SAFETY: `message` names a buffer and a control area that live until the end, with their sizes.
    let got = unsafe { libc::recvmsg(fd, &raw mut message, flags | libc::MSG_DONTWAIT) };
    let got = usize::try_from(got).map_err(|_| io::Error::last_os_error())?;
    Ok((got, stamp(&message).and_then(when_it_was)))
}

/// The time that the kernel put next to the bytes, by the real-time clock.
fn stamp(message: &libc::msghdr) -> Option<Timespec> {
    // SAFETY: the kernel has filled in the control area of `message`, which is still alive.
    let header = unsafe { libc::CMSG_FIRSTHDR(message).as_ref() }?;
    if (header.cmsg_level, header.cmsg_type) != (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) {
        return None;
    }
    // SAFETY: this kind of message holds a `timespec` (socket(7)), aligned or not.
    let stamp = unsafe { libc::CMSG_DATA(header).cast::<libc::timespec>().read_unaligned() };
    Some(Timespec { tv_sec: stamp.tv_sec, tv_nsec: stamp.tv_nsec })
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::{Ipv4Addr, TcpListener, TcpStream};
    use std::thread::sleep;
    use std::time::Duration;

    use super::*;
    use crate::clock::now_ns;

    #[test]
    fn bytes_that_lay_around_arrived_when_they_were_sent() {
        let (mut client, server) = connection();
        let mut stamped_right = |flags| {
            let before_ns = now_ns();
            client.write_all(b"hello").expect("room");
            let sent_ns = now_ns();
            sleep(Duration::from_millis(20));
            let mut bytes = [0; 16];
            let (got, arrived_ns) = receive(&server, &mut bytes, flags).expect("bytes");
            assert_eq!(got, 5);
            assert_eq!(&bytes[..5] == b"hello", flags.is_empty());
            // Two clocks are read, one after the other.
            arrived_ns
                .is_some_and(|at_ns| (before_ns - 1_000_000..sent_ns + 1_000_000).contains(&at_ns))
        };
        // The kernel begins to stamp a little after it was asked to.
        assert!((0..50).any(|_| stamped_right(RecvFlags::empty())));
        // Also where it drops the bytes.
        assert!((0..50).any(|_| stamped_right(RecvFlags::TRUNC)));
    }

    #[test]
    fn nothing_there_is_not_the_end() {
        let (client, server) = connection();
        let error =
            receive(&server, &mut [0; 16], RecvFlags::empty()).expect_err("nothing was sent");
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
        drop(client);
        let end = receive(&server, &mut [0; 16], RecvFlags::empty()).expect("the end");
        assert_eq!(end, (0, None));
    }

    fn connection() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        keep_times(&listener).expect("the kernel's times");
        let client = TcpStream::connect(listener.local_addr().expect("an address"));
        let (server, _) = listener.accept().expect("its other end");
        (client.expect("a connection"), server)
    }
}
