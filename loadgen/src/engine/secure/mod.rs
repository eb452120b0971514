//! TLS on a socket, without waiting. What one read brings, many records mostly, lies in a buffer of
//! the thread and is decrypted there: rustls's own buffers hold one record, so that each would cost
//! a read, and is copied once more.

use std::cell::RefCell;
use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, send};
use rustls::client::{ClientConnectionData, UnbufferedClientConnection};
use rustls::pki_types::ServerName;
use rustls::unbuffered::{
    ConnectionState, EncodeError, EncodeTlsData, EncryptError, UnbufferedStatus, WriteTraffic,
};
use rustls::{ClientConfig, HandshakeKind, ProtocolVersion};

use super::socket::{Got, is_none, receive};

/// The most that is read at once.
const READ_BYTES: usize = 64 * 1024;
/// Two records fit into it: 16 KB each and a bit (RFC 8446 section 5.2).
const FEWEST_BYTES: usize = READ_BYTES / 2;
/// What is encrypted at a time.
const WRITE_BYTES: usize = READ_BYTES;
/// Of a record, without its content: head, explicit nonce, type and tag at most.
const AROUND_RECORD_BYTES: usize = 64;
const RECORD_BYTES: usize = 16 * 1024;

thread_local! {
    static INCOMING: RefCell<Vec<u8>> = RefCell::new(vec![0; READ_BYTES]);
}

pub struct Secure {
    tls: UnbufferedClientConnection,
    /// The beginning of a record, or of a message, of which the rest hasn't come.
    incoming: Vec<u8>,
    /// Decrypted, and how much of it was taken.
    plain: Vec<u8>,
    taken: usize,
    /// Encrypted, and not sent yet.
    outgoing: Vec<u8>,
    /// The last read brought all there was.
    drained: bool,
    /// When that had arrived; 0 where the kernel doesn't report it.
    pub arrived_ns: u64,
    /// The other side said that nothing more follows.
    has_ended: bool,
    /// What came was wrong: rustls isn't called again, which may panic without those bytes.
    has_failed: bool,
}

/// What a read of the socket brought.
enum Filled {
    Nothing,
    Bytes,
    End,
}

/// Where what was decrypted goes: as much as fits to whoever reads, the rest is kept.
struct Sink<'a> {
    buffer: &'a mut [u8],
    filled: usize,
}

impl Secure {
    pub fn new(
        config: Arc<ClientConfig>,
        name: ServerName<'static>,
    ) -> Result<Secure, rustls::Error> {
        Ok(Secure {
            tls: UnbufferedClientConnection::new(config, name)?,
            incoming: Vec::new(),
            plain: Vec::new(),
            taken: 0,
            outgoing: Vec::new(),
            drained: false,
            arrived_ns: 0,
            has_ended: false,
            has_failed: false,
        })
    }

    /// Goes on with the handshake; true when it is done.
    pub fn handshake(&mut self, fd: &OwnedFd) -> io::Result<bool> {
        self.settle()?;
        loop {
            if !self.flush(fd)? {
                return Ok(false);
            }
            if !self.tls.is_handshaking() {
                return Ok(true);
            }
            match self.fill(fd, &mut Sink::keeping(), false) {
                Ok(Filled::Bytes) => {}
                Ok(Filled::Nothing) => return Ok(false),
                Ok(Filled::End) => {
                    return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "closed"));
                }
                Err(error) => {
                    // What is wrong with it was encoded; if it can be sent at once, it is.
                    let _ = self.flush(fd);
                    return Err(error);
                }
            }
        }
    }

    /// After a handshake: what the server chose to speak, and whether a session was resumed.
    pub fn agreed(&self) -> (Option<&[u8]>, bool) {
        let is_resumed = self.tls.handshake_kind() == Some(HandshakeKind::Resumed);
        (self.tls.alpn_protocol(), is_resumed)
    }

    /// After a handshake: the version and the cipher, by the names that RFC 8446 has for them.
    pub fn version_and_cipher(&self) -> Option<String> {
        let version = match self.tls.protocol_version()? {
            ProtocolVersion::TLSv1_2 => "TLSv1.2".into(),
            ProtocolVersion::TLSv1_3 => "TLSv1.3".into(),
            other => format!("{other:?}"),
        };
        let cipher = format!("{:?}", self.tls.negotiated_cipher_suite()?.suite());
        Some(format!("{version}, {}", cipher.replacen("TLS13_", "TLS_", 1)))
    }

    /// Writes as much as fits; how much was taken. An error means that nothing of it has left.
    pub fn write(&mut self, fd: &OwnedFd, bytes: &[u8]) -> io::Result<usize> {
        let mut taken = 0;
        while taken < bytes.len() {
            match self.flush(fd) {
                Ok(true) => {}
                Ok(false) => break,
                // What has left may have been answered: reading shows it.
                Err(_) if taken > 0 => break,
                Err(error) => return Err(error),
            }
            let piece = &bytes[taken..bytes.len().min(taken + WRITE_BYTES)];
            self.encrypt(piece)?;
            taken += piece.len();
        }
        match self.flush(fd) {
            Err(error) if taken <= WRITE_BYTES => Err(error),
            _ => Ok(taken),
        }
    }

    /// Sends what is encrypted; true when nothing waits.
    pub fn flush(&mut self, fd: &OwnedFd) -> io::Result<bool> {
        let mut sent = 0;
        let outcome = loop {
            if sent == self.outgoing.len() {
                break Ok(true);
            }
            match send(fd, &self.outgoing[sent..], SendFlags::NOSIGNAL) {
                Ok(count) => sent += count,
                Err(Errno::AGAIN) => break Ok(false),
                Err(Errno::INTR) => {}
                Err(error) => break Err(error.into()),
            }
        };
        self.outgoing.drain(..sent);
        outcome
    }

    pub fn is_flushed(&self) -> bool {
        self.outgoing.is_empty()
    }

    /// Reads once, or until something is decrypted.
    pub fn read(&mut self, fd: &OwnedFd, buffer: &mut [u8], stamped: bool) -> io::Result<Got> {
        loop {
            if let Some(got) = self.take_plain(buffer) {
                return Ok(got);
            }
            if self.has_ended {
                return Ok(Got::End { cut: false });
            }
            let mut sink = Sink { buffer, filled: 0 };
            let filled = self.fill(fd, &mut sink, stamped)?;
            let count = sink.filled;
            match filled {
                Filled::Nothing => return Ok(Got::Nothing),
                Filled::End => return Ok(Got::End { cut: true }),
                Filled::Bytes if count > 0 => return Ok(self.got(count)),
                Filled::Bytes if self.drained && !self.has_ended => return Ok(Got::Nothing),
                Filled::Bytes => {}
            }
        }
    }

    /// Says that nothing more follows (RFC 8446 section 6.1), if that can be done at once.
    pub fn close(&mut self, fd: &OwnedFd) {
        if self.has_failed || self.tls.is_handshaking() {
            return;
        }
        let queued = self.with_traffic(|traffic, outgoing| {
            let begin = outgoing.len();
            outgoing.resize(begin + AROUND_RECORD_BYTES, 0);
            let count = traffic.queue_close_notify(&mut outgoing[begin..]).unwrap_or(0);
            outgoing.truncate(begin + count);
        });
        if queued.is_ok() {
            let _ = self.flush(fd);
        }
    }

    fn take_plain(&mut self, buffer: &mut [u8]) -> Option<Got> {
        let rest = &self.plain[self.taken..];
        if rest.is_empty() {
            return None;
        }
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        self.taken += count;
        if self.taken == self.plain.len() {
            self.plain.clear();
            self.taken = 0;
        }
        Some(self.got(count))
    }

    fn got(&self, count: usize) -> Got {
        Got::Bytes { count, drained: self.drained && self.plain.is_empty() && !self.has_ended }
    }

    /// Reads the socket once and decrypts all records that are whole.
    fn fill(&mut self, fd: &OwnedFd, sink: &mut Sink<'_>, stamped: bool) -> io::Result<Filled> {
        INCOMING.with_borrow_mut(|incoming| {
            let kept = self.incoming.len();
            // What is decrypted is no longer than that.
            let room = sink.buffer.len().clamp(FEWEST_BYTES, READ_BYTES).max(2 * kept);
            if incoming.len() < room {
                incoming.resize(room, 0);
            }
            incoming[..kept].copy_from_slice(&self.incoming);
            let brought = receive(fd, &mut incoming[kept..room], RecvFlags::empty(), stamped);
            let count = match brought {
                Err(error) if is_none(&error) => return Ok(Filled::Nothing),
                Err(error) => return Err(error),
                Ok((0, _)) => return Ok(Filled::End),
                Ok((count, arrived_ns)) => {
                    self.arrived_ns = arrived_ns;
                    count
                }
            };
            self.drained = kept + count < room;
            let came = &mut incoming[..kept + count];
            let done = self.process(came, sink)?;
            self.incoming.clear();
            self.incoming.extend_from_slice(&came[done..]);
            // What the other side waits for, such as the refusal to shake hands again, is not kept
            // for the next request. That it can't be sent shows when reading.
            if !self.outgoing.is_empty() {
                let _ = self.flush(fd);
            }
            Ok(Filled::Bytes)
        })
    }

    /// Goes through what came before.
    fn settle(&mut self) -> io::Result<()> {
        let mut kept = std::mem::take(&mut self.incoming);
        let done = self.process(&mut kept, &mut Sink::keeping())?;
        kept.drain(..done);
        self.incoming = kept;
        Ok(())
    }

    /// Goes through all records that are whole; how many bytes these are.
    fn process(&mut self, incoming: &mut [u8], sink: &mut Sink<'_>) -> io::Result<usize> {
        let mut done = 0;
        loop {
            let UnbufferedStatus { mut discard, state } =
                self.tls.process_tls_records(&mut incoming[done..]);
            let state = match state {
                Ok(state) => state,
                Err(error) => {
                    self.encode_alert(&mut incoming[done + discard..]);
                    return Err(invalid(error));
                }
            };
            match state {
                ConnectionState::ReadTraffic(mut records) => {
                    while let Some(record) = records.next_record() {
                        let record = record.map_err(invalid)?;
                        discard += record.discard;
                        sink.take(record.payload, &mut self.plain);
                    }
                }
                ConnectionState::EncodeTlsData(mut data) => encode(&mut data, &mut self.outgoing)?,
                ConnectionState::TransmitTlsData(data) => data.done(),
                ConnectionState::PeerClosed => self.has_ended = true,
                _ => return Ok(done + discard),
            }
            done += discard;
        }
    }

    fn encrypt(&mut self, bytes: &[u8]) -> io::Result<()> {
        let around = (bytes.len() / RECORD_BYTES + 1) * AROUND_RECORD_BYTES;
        self.with_traffic(|traffic, outgoing| {
            let begin = outgoing.len();
            outgoing.resize(begin + bytes.len() + around, 0);
            let mut encrypted = traffic.encrypt(bytes, &mut outgoing[begin..]);
            if let Err(EncryptError::InsufficientSize(error)) = &encrypted {
                outgoing.resize(begin + error.required_size, 0);
                encrypted = traffic.encrypt(bytes, &mut outgoing[begin..]);
            }
            outgoing.truncate(begin + *encrypted.as_ref().unwrap_or(&0));
            encrypted.map(|_| ()).map_err(invalid)
        })?
    }

    /// Does something with a connection on which bytes may be sent.
    fn with_traffic<T>(
        &mut self,
        act: impl FnOnce(&mut WriteTraffic<'_, ClientConnectionData>, &mut Vec<u8>) -> T,
    ) -> io::Result<T> {
        loop {
            let UnbufferedStatus { state, .. } = self.tls.process_tls_records(&mut self.incoming);
            match state.map_err(invalid)? {
                ConnectionState::WriteTraffic(mut traffic) => {
                    return Ok(act(&mut traffic, &mut self.outgoing));
                }
                ConnectionState::EncodeTlsData(mut data) => encode(&mut data, &mut self.outgoing)?,
                ConnectionState::TransmitTlsData(data) => data.done(),
                _ => return Err(io::Error::new(io::ErrorKind::BrokenPipe, "closed")),
            }
        }
    }

    /// Encodes the alert about the server's mistake, where it gets one: once, with what is left of
    /// the bytes that it made it in.
    fn encode_alert(&mut self, rest: &mut [u8]) {
        let is_first = !std::mem::replace(&mut self.has_failed, true);
        if is_first
            && let Ok(ConnectionState::EncodeTlsData(mut alert)) =
                self.tls.process_tls_records(rest).state
        {
            let _ = encode(&mut alert, &mut self.outgoing);
        }
    }
}

impl fmt::Debug for Secure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secure").finish_non_exhaustive()
    }
}

impl Sink<'_> {
    /// All is kept.
    fn keeping() -> Self {
        Sink { buffer: &mut [], filled: 0 }
    }

    fn take(&mut self, bytes: &[u8], plain: &mut Vec<u8>) {
        let room = &mut self.buffer[self.filled..];
        let (fits, rest) = bytes.split_at(room.len().min(bytes.len()));
        room[..fits.len()].copy_from_slice(fits);
        self.filled += fits.len();
        plain.extend_from_slice(rest);
    }
}

fn encode(
    data: &mut EncodeTlsData<'_, ClientConnectionData>,
    outgoing: &mut Vec<u8>,
) -> io::Result<()> {
    let begin = outgoing.len();
    let mut encoded = data.encode(&mut outgoing[begin..]);
    if let Err(EncodeError::InsufficientSize(error)) = &encoded {
        outgoing.resize(begin + error.required_size, 0);
        encoded = data.encode(&mut outgoing[begin..]);
    }
    encoded.map(|_| ()).map_err(invalid)
}

fn invalid(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

#[cfg(test)]
mod tests;
