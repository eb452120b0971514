//! An HTTP/2 connection, shared by many requests: the `h2` library, driven by hand. Its futures are
//! polled when something has come or is to be sent, and each stream when the library has woken it.

use std::cell::Cell;
use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use bytes::Bytes;
use h2::client::{Builder, Connection, ResponseFuture, SendRequest};
use h2::{Error, Reason, RecvStream};
use http::HeaderMap;
use http::header::CONTENT_LENGTH;
use rustix::net::RecvFlags;
use sha2::{Digest, Sha256};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::flight::{Answer, Flight};
use super::socket::Got;
use super::wire::Wire;
use crate::grpc::Rpc;
use crate::http2::{Message, Trouble};
use crate::record::Failure;

/// Flow control windows as Chrome has them, so that it isn't them that limit a server nearby.
const STREAM_WINDOW_BYTES: u32 = 6 << 20;
const CONNECTION_WINDOW_BYTES: u32 = 15 << 20;
/// A connection that always has more to read gives way to the others after so much.
const BYTES_AT_ONCE: usize = 1 << 20;

/// Why a connection takes no more requests.
#[derive(Debug)]
pub enum LinkEnd {
    /// We are done with it.
    Retired,
    /// The server announced its end; what it has begun it may still answer.
    GoAway,
    /// The server closed it, or it broke.
    Lost(Option<Error>),
}

/// What became of handing over a request.
#[derive(Debug)]
pub enum Handed {
    Over,
    /// The connection has ended.
    Ended,
    /// The library doesn't send such a request.
    Refused(Error),
}

/// What became of a request; texts are for people.
#[derive(Debug)]
pub enum Outcome {
    Answered(Answer),
    Trouble(Trouble, String),
}

type Opening = Pin<Box<dyn Future<Output = Result<Opened, Error>>>>;
type Opened = (SendRequest<Bytes>, Connection<Io, Bytes>);

#[derive(Default)]
pub struct Link {
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
    /// When a request was answered last; 0 before.
    pub answered_ns: u64,
    end: Option<LinkEnd>,
}

impl Link {
    /// Begins HTTP/2 on an open connection. It is ready when the server's settings are known, so
    /// that whoever answers does speak HTTP/2.
    pub fn begin(wire: Wire) -> Link {
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
        Link { opening: Some(Box::pin(opening)), readiness, ..Link::default() }
    }

    /// There may be more to read.
    pub fn arrived(&self, hangup: bool) {
        self.readiness.drained.set(false);
        self.readiness.hangup.set(self.readiness.hangup.get() | hangup);
    }

    /// When what was read last had arrived; 0 where the kernel doesn't tell.
    pub fn arrived_ns(&self) -> u64 {
        self.readiness.arrived_ns.get()
    }

    /// The rest of an answer is lacking.
    pub fn is_reading(&self) -> bool {
        let is_reading = |stream: &Stream| matches!(stream.phase, Phase::Reading(_));
        self.streams.iter().flatten().any(is_reading)
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
                Poll::Ready(Err(error)) => self.finish(LinkEnd::Lost(Some(error))),
            }
            self.opening = None;
        }
        let Some(connection) = &mut self.connection else { return false };
        let polled = Pin::new(&mut *connection).poll(cx);
        if self.readiness.has_read.take() || polled.is_ready() {
            self.allowed = connection.max_concurrent_send_streams();
            // First, because a GOAWAY may have come together with the end.
            match self.sender.as_mut().map(|sender| sender.poll_ready(cx)) {
                Some(Poll::Ready(Err(error))) if error.is_go_away() && error.is_remote() => {
                    self.finish(LinkEnd::GoAway);
                }
                Some(Poll::Ready(Err(error))) => self.finish(LinkEnd::Lost(Some(error))),
                _ => {}
            }
        }
        if let Poll::Ready(outcome) = polled {
            self.finish(LinkEnd::Lost(outcome.err()));
            self.connection = None;
        }
        self.connection.is_some() && self.readiness.left.get() == 0
    }

    /// The connection takes more requests.
    pub fn is_usable(&self) -> bool {
        self.end.is_none()
    }

    /// Why it takes no more.
    pub fn into_end(self) -> Option<LinkEnd> {
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
    ) -> Handed {
        let Some(sender) = &mut self.sender else { return Handed::Ended };
        let sent = sender.send_request(message.head.clone(), message.body.is_none());
        let (answer, mut body) = match sent {
            Ok(sent) => sent,
            Err(error) if error.is_io() || error.is_go_away() || error.is_reset() => {
                return Handed::Ended;
            }
            Err(error) => return Handed::Refused(error),
        };
        if let Some(bytes) = &message.body {
            // If the stream is gone already, the answer says why.
            let _ = body.send_data(bytes.clone(), true);
        }
        while self.streams.len() <= number {
            let awake = Arc::clone(&self.awake);
            self.wakers
                .push(Waker::from(Arc::new(StreamWaker { number: self.wakers.len(), awake })));
            self.streams.push(None);
        }
        let phase = Phase::Waiting(answer);
        self.streams[number] = Some(Stream { flight, is_head, hash, phase });
        self.in_flight += 1;
        self.dirty = true;
        // Looked at once, so that it knows whom to wake.
        self.awake.push(number);
        Handed::Over
    }

    /// The next request whose fate is known.
    pub fn next_ended(&mut self, now_ns: u64) -> Option<(Flight, Outcome)> {
        while let Some(number) = self.awake.pop() {
            let Some(stream) = &mut self.streams[number] else { continue };
            let cx = &mut Context::from_waker(&self.wakers[number]);
            let polled = stream.poll(cx, now_ns);
            // What was read makes room in a window, of which the server is to hear.
            self.dirty |= matches!(stream.phase, Phase::Reading(_));
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
        self.finish(LinkEnd::Retired);
        self.dirty = true;
    }

    fn finish(&mut self, end: LinkEnd) {
        self.end.get_or_insert(end);
        self.sender = None;
    }
}

struct Stream {
    flight: Flight,
    is_head: bool,
    hash: Option<Box<Sha256>>,
    phase: Phase,
}

enum Phase {
    Waiting(ResponseFuture),
    Reading(Reading),
}

struct Reading {
    body: RecvStream,
    status: u16,
    head_bytes: u64,
    first_byte_ns: u64,
    /// Bytes of the body by Content-Length, where they must come.
    announced: Option<u64>,
    bytes: u64,
    /// Of a gRPC answer: its status and message, from its head or its trailers.
    rpc: Option<Rpc>,
}

impl Stream {
    fn poll(&mut self, cx: &mut Context<'_>, now_ns: u64) -> Poll<Outcome> {
        if let Phase::Waiting(answer) = &mut self.phase {
            let (head, body) = match Pin::new(answer).poll(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(answer)) => answer.into_parts(),
                Poll::Ready(Err(error)) => return Poll::Ready(trouble(&error, false, false)),
            };
            self.phase = Phase::Reading(Reading {
                body,
                status: head.status.as_u16(),
                head_bytes: decoded_bytes(&head.headers),
                first_byte_ns: now_ns,
                announced: if self.is_head { None } else { announced(&head.headers) },
                bytes: 0,
                rpc: Rpc::of(&head.headers),
            });
        }
        let Phase::Reading(reading) = &mut self.phase else { return Poll::Pending };
        match reading.read(&mut self.hash, cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Err(error)) => Poll::Ready(trouble(&error, true, reading.is_lacking())),
            Poll::Ready(Ok(())) => Poll::Ready(Outcome::Answered(Answer {
                status: reading.status,
                head_bytes: reading.head_bytes,
                body_bytes: reading.bytes,
                hash: self.hash.take(),
                fault: reading.rpc.as_ref().and_then(Rpc::failure).map(|it| (Failure::Status, it)),
                grpc_status: reading.rpc.as_ref().and_then(Rpc::code),
                first_byte_ns: reading.first_byte_ns,
                done_ns: now_ns,
            })),
        }
    }
}

impl Reading {
    fn read(
        &mut self,
        hash: &mut Option<Box<Sha256>>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), Error>> {
        while !self.body.is_end_stream() {
            let data = match self.body.poll_data(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(None) => break,
                Poll::Ready(Some(Ok(data))) => data,
                // The answer is complete, and the rest of the request not wanted
                // (RFC 9113 section 8.1).
                Poll::Ready(Some(Err(error))) if is_no_error(&error) && !self.is_lacking() => break,
                Poll::Ready(Some(Err(error))) => return Poll::Ready(Err(error)),
            };
            self.bytes += data.len() as u64;
            if let Some(hash) = hash {
                hash.update(&data);
            }
            // Fails only for more than was received.
            let _ = self.body.flow_control().release_capacity(data.len());
        }
        let Some(rpc) = self.rpc.as_mut().filter(|rpc| rpc.status.is_none()) else {
            return Poll::Ready(Ok(()));
        };
        match self.body.poll_trailers(cx) {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(Ok(trailers)) => rpc.read(&trailers.unwrap_or_default()),
            Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
        }
        Poll::Ready(Ok(()))
    }

    fn is_lacking(&self) -> bool {
        self.announced.is_some_and(|announced| self.bytes < announced)
    }
}

fn is_no_error(error: &Error) -> bool {
    error.is_reset() && error.is_remote() && error.reason() == Some(Reason::NO_ERROR)
}

fn trouble(error: &Error, begun: bool, lacking: bool) -> Outcome {
    let trouble = Trouble::of(error, begun, lacking);
    Outcome::Trouble(trouble, trouble.explain(error))
}

fn announced(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// Bytes of names and values; how many they were on the wire the library doesn't tell.
fn decoded_bytes(headers: &HeaderMap) -> u64 {
    headers.iter().map(|(name, value)| (name.as_str().len() + value.len()) as u64).sum()
}

/// Streams that something has happened to.
#[derive(Debug, Default)]
struct Awake(Mutex<VecDeque<usize>>);

impl Awake {
    fn push(&self, number: usize) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push_back(number);
    }

    fn pop(&self) -> Option<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }
}

struct StreamWaker {
    number: usize,
    awake: Arc<Awake>,
}

impl Wake for StreamWaker {
    fn wake(self: Arc<Self>) {
        self.awake.push(self.number);
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.awake.push(self.number);
    }
}

/// What is known of a wire without asking the kernel.
#[derive(Debug, Default)]
struct Readiness {
    /// Nothing more is there until an event says so.
    drained: Cell<bool>,
    /// The other side closed: whatever is left is read to the end.
    hangup: Cell<bool>,
    /// Something was read since the last look at what it changed.
    has_read: Cell<bool>,
    /// Bytes that may still be read before it is the others' turn.
    left: Cell<usize>,
    arrived_ns: Cell<u64>,
}

/// A wire as the library wants it.
struct Io {
    wire: Wire,
    readiness: Rc<Readiness>,
}

impl AsyncRead for Io {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let readiness = Rc::clone(&self.readiness);
        if readiness.drained.get() || readiness.left.get() == 0 {
            return Poll::Pending;
        }
        match self.wire.read(buffer.initialize_unfilled(), RecvFlags::empty())? {
            Got::Nothing => {
                readiness.drained.set(true);
                return Poll::Pending;
            }
            Got::Bytes { count, drained } => {
                readiness.has_read.set(true);
                readiness.drained.set(drained && !readiness.hangup.get());
                readiness.left.set(readiness.left.get().saturating_sub(count));
                readiness.arrived_ns.set(self.wire.arrived_ns);
                buffer.advance(count);
            }
            Got::End { .. } => {}
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Io {
    fn poll_write(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.wire.write(bytes)? {
            0 => Poll::Pending,
            count => Poll::Ready(Ok(count)),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.wire.flush()? { Poll::Ready(Ok(())) } else { Poll::Pending }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_flush(cx)
    }
}
