//! An HTTP/2 connection, shared by many requests: the `h2` library, driven by hand. Its futures are
//! polled when something has come or is to be sent, and each stream when the library has woken it.

use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use h2::Error;
use h2::client::{Builder, Connection, SendRequest};
use sha2::Sha256;

use super::awake::Awake;
use super::io::{Io, Readiness};
use super::stream::{Outcome, Stream};
use crate::engine::flight::Flight;
use crate::engine::wire::Wire;
use crate::http2::request::Message;

/// Flow control windows as Chrome has them, so that it isn't them that limit a server nearby.
const STREAM_WINDOW_BYTES: u32 = 6 << 20;
const CONNECTION_WINDOW_BYTES: u32 = 15 << 20;
/// A connection that always has more to read gives way to the others after so much.
const BYTES_AT_ONCE: usize = 1 << 20;

/// Why a connection takes no more requests.
#[derive(Debug)]
pub enum ConnectionEnd {
    /// We are done with it.
    Retired,
    /// The server announced its end; what it has begun it may still answer.
    GoAway,
    /// The server closed it, or it broke.
    Lost(Option<Error>),
}

/// What became of submitting a request.
#[derive(Debug)]
pub enum Submitted {
    Accepted,
    /// The connection has ended.
    Ended,
    /// The library doesn't send such a request.
    Refused(Error),
}

type Opening = Pin<Box<dyn Future<Output = Result<Opened, Error>>>>;
type Opened = (SendRequest<Bytes>, Connection<Io, Bytes>);

#[derive(Default)]
pub struct Http2Connection {
    opening: Option<Opening>,
    connection: Option<Connection<Io, Bytes>>,
    /// Gone when no more requests are taken: without it the connection closes after its last one.
    sender: Option<SendRequest<Bytes>>,
    readiness: Rc<Readiness>,
    streams: Vec<Option<Stream>>,
    wakers: Vec<Waker>,
    awake: Arc<Awake>,
    pub in_flight: usize,
    /// Streams the server allows at a time; 0 before its settings are known.
    pub allowed: usize,
    /// Something waits to be sent.
    pub dirty: bool,
    /// When a request was sent last, and when one was answered last; 0 before.
    pub sent_ns: u64,
    pub answered_ns: u64,
    end: Option<ConnectionEnd>,
}

impl Http2Connection {
    /// Begins HTTP/2 on an open connection. It is ready when the server's settings are known, so
    /// that whoever answers does speak HTTP/2.
    pub fn begin(wire: Wire) -> Http2Connection {
        let readiness = Rc::new(Readiness::default());
        let io = Io { wire, readiness: Rc::clone(&readiness) };
        let opening = Builder::new()
            .initial_max_send_streams(0)
            .enable_push(false)
            .initial_window_size(STREAM_WINDOW_BYTES)
            .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
            // A server may answer wrongly as often as it likes: that is counted, not punished.
            .max_local_error_reset_streams(None)
            .handshake(io);
        Http2Connection {
            opening: Some(Box::pin(opening)),
            readiness,
            ..Http2Connection::default()
        }
    }

    /// There may be more to read.
    pub fn arrived(&self, hangup: bool) {
        self.readiness.more_arrived(hangup);
    }

    /// When what was read last had arrived; 0 where the kernel doesn't tell.
    pub fn arrived_ns(&self) -> u64 {
        self.readiness.arrived_ns.get()
    }

    /// The rest of an answer is lacking.
    pub fn is_reading(&self) -> bool {
        self.streams.iter().flatten().any(Stream::is_reading)
    }

    /// Moves frames both ways as far as that goes now; true when there is more to do at once.
    pub fn move_frames(&mut self) -> bool {
        self.dirty = false;
        self.readiness.left.set(BYTES_AT_ONCE);
        let cx = &mut Context::from_waker(Waker::noop());
        if let Some(opening) = &mut self.opening {
            match opening.as_mut().poll(cx) {
                Poll::Pending => return false,
                Poll::Ready(Ok((sender, connection))) => {
                    (self.sender, self.connection) = (Some(sender), Some(connection));
                }
                Poll::Ready(Err(error)) => self.finish(ConnectionEnd::Lost(Some(error))),
            }
            self.opening = None;
        }
        let Some(connection) = &mut self.connection else { return false };
        let polled = Pin::new(&mut *connection).poll(cx);
        self.allowed = connection.max_concurrent_send_streams();
        // First, because a GOAWAY may have come together with the end.
        match self.sender.as_mut().map(|sender| sender.poll_ready(cx)) {
            Some(Poll::Ready(Err(error))) if error.is_go_away() && error.is_remote() => {
                self.finish(ConnectionEnd::GoAway);
            }
            Some(Poll::Ready(Err(error))) => self.finish(ConnectionEnd::Lost(Some(error))),
            _ => {}
        }
        if let Poll::Ready(outcome) = polled {
            self.finish(ConnectionEnd::Lost(outcome.err()));
            self.connection = None;
        }
        self.connection.is_some() && self.readiness.left.get() == 0
    }

    /// The connection takes more requests.
    pub fn is_usable(&self) -> bool {
        self.end.is_none()
    }

    /// Why it takes no more.
    pub fn into_end(self) -> Option<ConnectionEnd> {
        self.end
    }

    /// Another request can be sent now.
    pub fn has_room(&mut self) -> bool {
        let cx = &mut Context::from_waker(Waker::noop());
        self.is_usable()
            && self.in_flight < self.allowed
            && self.sender.as_mut().is_some_and(|sender| sender.poll_ready(cx).is_ready())
    }

    /// Hands over a request for a stream of a number of ours.
    pub fn send(
        &mut self,
        number: usize,
        flight: Flight,
        message: &Message,
        is_head: bool,
        hash: Option<Box<Sha256>>,
    ) -> Submitted {
        let Some(sender) = &mut self.sender else { return Submitted::Ended };
        let sent = sender.send_request(message.head.clone(), message.body.is_none());
        let (answer, mut body) = match sent {
            Ok(sent) => sent,
            Err(error) if error.is_io() || error.is_go_away() || error.is_reset() => {
                return Submitted::Ended;
            }
            Err(error) => return Submitted::Refused(error),
        };
        if let Some(bytes) = &message.body {
            // If the stream is gone already, the answer says why.
            let _ = body.send_data(bytes.clone(), true);
        }
        while self.streams.len() <= number {
            self.wakers.push(self.awake.waker(self.streams.len()));
            self.streams.push(None);
        }
        self.sent_ns = flight.sent_ns;
        self.streams[number] = Some(Stream::new(flight, is_head, hash, answer));
        self.in_flight += 1;
        self.dirty = true;
        // Looked at once, so that it knows whom to wake.
        self.awake.push(number);
        Submitted::Accepted
    }

    /// The next request whose fate is known.
    pub fn next_ended(&mut self, now_ns: u64) -> Option<(Flight, Outcome)> {
        while let Some(number) = self.awake.pop() {
            let Some(stream) = &mut self.streams[number] else { continue };
            let cx = &mut Context::from_waker(&self.wakers[number]);
            // Of what one read brought the kernel tells one time.
            let polled = stream.poll(cx, now_ns.max(stream.flight.sent_ns));
            // What was read makes room in a window, of which the server is to hear.
            self.dirty |= stream.is_reading();
            if let Poll::Ready(outcome) = polled {
                if matches!(outcome, Outcome::Answered(_)) {
                    self.answered_ns = now_ns;
                }
                return self.take(number).map(|flight| (flight, outcome));
            }
        }
        None
    }

    /// Gives up the requests that were sent by `sent_ns` and whose answers are lacking; their streams
    /// are cancelled.
    pub fn take_late(&mut self, sent_ns: u64) -> Vec<Flight> {
        let is_late = |stream: &Stream| stream.flight.sent_ns <= sent_ns;
        let late = |number: &usize| self.streams[*number].as_ref().is_some_and(is_late);
        let late = Vec::from_iter((0..self.streams.len()).filter(late));
        late.into_iter().filter_map(|number| self.take(number)).collect()
    }

    pub fn flights(&self) -> impl Iterator<Item = &Flight> {
        self.streams.iter().flatten().map(|stream| &stream.flight)
    }

    fn take(&mut self, number: usize) -> Option<Flight> {
        let stream = self.streams[number].take()?;
        self.in_flight -= 1;
        self.dirty = true;
        Some(stream.flight)
    }

    /// Takes no more requests; those in flight are still answered.
    pub fn retire(&mut self) {
        self.finish(ConnectionEnd::Retired);
        self.dirty = true;
    }

    fn finish(&mut self, end: ConnectionEnd) {
        self.end.get_or_insert(end);
        self.sender = None;
    }
}
