//! What is said on an HTTP/3 connection: each request has a stream of QUIC's, on which its answer
//! comes.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use quinn_proto::{Connection, Dir, ReadError, SendStream, StreamId, VarInt, WriteError};

use super::server_streams::ServerStreams;
use crate::engine::flight::Flight;
use crate::engine::http2::dialog::Kept;
use crate::engine::http2::stream::{Outcome, Reading, Rest, Stream};
use crate::events::EventStream;
use crate::http1::head::MAX_HEAD_BYTES;
use crate::http2::code::NO_ERROR;
use crate::http2::fields::Fields;
use crate::http2::trouble::{ConnectionEnd, Trouble};
use crate::http3::code::{
    self, FRAME_ERROR, Fault, MESSAGE_ERROR, REQUEST_CANCELLED, STREAM_CREATION_ERROR,
};
use crate::http3::qpack::Decoder;
use crate::http3::reader::{Kind, Piece, Reader};
use crate::http3::settings::control_stream;
use crate::http3::trouble::{self, Lost};

pub struct Dialog {
    streams: BTreeMap<StreamId, Box<Exchange>>,
    /// Streams that are opened for the next requests: how many more the server allows is not known
    /// before.
    spare: VecDeque<StreamId>,
    /// Requests that we want to have on their way at a time.
    most: usize,
    /// Streams to be looked at: an answer has begun, or what became of a request is known.
    changed: VecDeque<StreamId>,
    /// Streams of which events came.
    heard: VecDeque<StreamId>,
    decoder: Decoder,
    server: ServerStreams,
    pub end: Option<ConnectionEnd>,
    /// How it was lost, where it was.
    pub lost: Option<Lost>,
    /// What came, where it is to be kept.
    pub kept: Option<Kept>,
}

/// A request and its answer.
struct Exchange {
    stream: Stream,
    reader: Reader,
    /// Nothing may follow (RFC 9114 section 4.1).
    has_trailers: bool,
}

/// What reading a stream came to.
enum Came {
    Some,
    All,
    Reset(u64),
    Wrong(Fault),
}

impl Dialog {
    pub fn new(most: usize) -> Dialog {
        Dialog {
            streams: BTreeMap::new(),
            spare: VecDeque::new(),
            most,
            changed: VecDeque::new(),
            heard: VecDeque::new(),
            decoder: Decoder::default(),
            server: ServerStreams::default(),
            end: None,
            lost: None,
            kept: None,
        }
    }

    /// QUIC is ready: HTTP/3 begins with our settings.
    pub fn begin(&mut self, quic: &mut Connection) -> Result<(), Fault> {
        let control = quic.streams().open(Dir::Uni);
        let settings = control_stream(MAX_HEAD_BYTES);
        match control.map(|id| quic.send_stream(id).write(&settings)) {
            Some(Ok(count)) if count == settings.len() => Ok(()),
            _ => Err(Fault::new(STREAM_CREATION_ERROR, "it has no room for the streams of HTTP/3")),
        }
    }

    /// Opens streams for the next requests, as far as the server allows.
    pub fn open_streams(&mut self, quic: &mut Connection) {
        while self.end.is_none()
            && self.allowed() < self.most
            && let Some(id) = quic.streams().open(Dir::Bi)
        {
            self.spare.push_back(id);
        }
    }

    pub fn in_flight(&self) -> usize {
        self.streams.len()
    }

    pub fn allowed(&self) -> usize {
        self.streams.len() + self.spare.len()
    }

    pub fn has_room(&self) -> bool {
        self.end.is_none() && !self.spare.is_empty()
    }

    /// Puts a request on a stream.
    pub fn send(
        &mut self,
        quic: &mut Connection,
        flight: Flight,
        frames: &Arc<[u8]>,
        is_head: bool,
        reading: Reading,
    ) {
        let Some(id) = self.spare.pop_front() else { return };
        let mut stream = Stream::over_quic(flight, is_head, reading);
        stream.rest = Some(Rest { body: Arc::clone(frames), sent: 0 });
        write(&mut stream, quic.send_stream(id));
        let reader = Reader::new(Kind::Request);
        let exchange = Exchange { stream, reader, has_trailers: false };
        self.streams.insert(id, Box::new(exchange));
    }

    /// There is room for more of a request.
    pub fn go_on_sending(&mut self, quic: &mut Connection, id: StreamId) {
        if let Some(exchange) = self.streams.get_mut(&id) {
            write(&mut exchange.stream, quic.send_stream(id));
        }
    }

    /// The server opened streams.
    pub fn accept(&mut self, quic: &mut Connection) -> Result<(), Fault> {
        while let Some(id) = quic.streams().accept(Dir::Uni) {
            self.server.open(id);
            self.read(quic, id)?;
        }
        Ok(())
    }

    /// Reads what has come on a stream.
    pub fn read(&mut self, quic: &mut Connection, id: StreamId) -> Result<(), Fault> {
        if id.dir() == Dir::Uni {
            self.server.read(quic, id)?;
            if let Some(first) = self.server.unprocessed_from() {
                self.leave_unprocessed(quic, first);
            }
            return Ok(());
        }
        let Some(exchange) = self.streams.get_mut(&id).filter(|it| !it.stream.is_over()) else {
            return Ok(());
        };
        let came = exchange.read(quic, id, &mut self.decoder, &mut self.kept);
        let stream = &mut exchange.stream;
        match came {
            Came::Some => {}
            Came::All if !exchange.reader.is_between_frames() => {
                return Err(Fault::new(FRAME_ERROR, "an answer ends in the middle of a frame"));
            }
            Came::All if stream.is_reading() => stream.finish(),
            Came::All => {
                stream.fail(trouble::malformed(Fault::message("an answer has no head").words()));
            }
            // The answer is complete, and the rest of the request not wanted (section 4.1).
            Came::Reset(reason) if reason == u64::from(code::NO_ERROR) && stream.is_complete() => {
                stream.finish();
            }
            Came::Reset(reason) => stream.fail(trouble::reset(reason)),
            Came::Wrong(fault) if fault.code == MESSAGE_ERROR => {
                stream.fail(trouble::malformed(fault.words()));
                cancel(quic, id, fault.code);
            }
            Came::Wrong(fault) => return Err(fault),
        }
        if stream.is_over() && stream.rest.take().is_some() {
            let _ = quic.send_stream(id).reset(VarInt::from_u32(REQUEST_CANCELLED));
        }
        if stream.has_fresh_events() {
            self.heard.push_back(id);
        }
        self.changed.push_back(id);
        Ok(())
    }

    /// The server announced its end: it won't look at the requests from that stream on.
    fn leave_unprocessed(&mut self, quic: &mut Connection, first: u64) {
        for (id, exchange) in &mut self.streams {
            if u64::from(*id) >= first && !exchange.stream.is_over() {
                exchange.stream.fail(Trouble::unprocessed(NO_ERROR));
                cancel(quic, *id, REQUEST_CANCELLED);
                self.changed.push_back(*id);
            }
        }
        self.finish(ConnectionEnd::GoAway);
    }

    /// Hands over the events that came since the last time.
    pub fn take_events(&mut self, mut take: impl FnMut(&Flight, &mut Option<Box<EventStream>>)) {
        while let Some(id) = self.heard.pop_front() {
            if let Some(exchange) = self.streams.get_mut(&id) {
                let stream = &mut exchange.stream;
                take(&stream.flight, &mut stream.reading.events);
            }
        }
    }

    /// The next request whose fate is known.
    pub fn next_ended(&mut self, now_ns: u64) -> Option<(Flight, Outcome)> {
        while let Some(id) = self.changed.pop_front() {
            let Some(exchange) = self.streams.get_mut(&id) else { continue };
            let seen_ns = now_ns.max(exchange.stream.flight.sent_ns);
            exchange.stream.see(seen_ns);
            if exchange.stream.is_over() {
                let exchange = self.streams.remove(&id)?;
                return Some(exchange.stream.into_outcome(seen_ns));
            }
        }
        None
    }

    /// Gives up requests whose answers are lacking; their streams are cancelled.
    pub fn take_where(
        &mut self,
        quic: &mut Connection,
        which: impl Fn(&Stream) -> bool,
    ) -> Vec<Stream> {
        let is_taken = |it: &Exchange| !it.stream.is_over() && which(&it.stream);
        let late = self.streams.iter().filter(|(_, it)| is_taken(it)).map(|(id, _)| *id);
        let mut taken = Vec::new();
        for id in late.collect::<Vec<_>>() {
            cancel(quic, id, REQUEST_CANCELLED);
            taken.extend(self.streams.remove(&id).map(|exchange| exchange.stream));
        }
        taken
    }

    pub fn flights(&self) -> impl Iterator<Item = &Flight> {
        self.streams.values().map(|exchange| &exchange.stream.flight)
    }

    /// Takes no more requests; those in flight are still answered.
    pub fn finish(&mut self, end: ConnectionEnd) {
        self.end.get_or_insert(end);
    }

    /// The connection is of no use any more: nothing in flight gets an answer.
    pub fn lose(&mut self, lost: Lost) {
        for (id, exchange) in &mut self.streams {
            if !exchange.stream.is_over() {
                exchange.stream.fail(lost.explain(exchange.stream.is_reading()));
                self.changed.push_back(*id);
            }
        }
        self.finish(ConnectionEnd::Lost(crate::http2::trouble::Lost::Closed));
        self.lost.get_or_insert(lost);
    }
}

impl Exchange {
    fn read(
        &mut self,
        quic: &mut Connection,
        id: StreamId,
        decoder: &mut Decoder,
        kept: &mut Option<Kept>,
    ) -> Came {
        let mut incoming = quic.recv_stream(id);
        let Ok(mut chunks) = incoming.read(true) else { return Came::Some };
        loop {
            match chunks.next(usize::MAX) {
                Ok(Some(chunk)) => {
                    if let Err(fault) = self.take(&chunk.bytes, decoder, kept) {
                        return Came::Wrong(fault);
                    }
                }
                Ok(None) => return Came::All,
                Err(ReadError::Blocked) => return Came::Some,
                Err(ReadError::Reset(reason)) => return Came::Reset(reason.into_inner()),
            }
        }
    }

    fn take(
        &mut self,
        bytes: &[u8],
        decoder: &mut Decoder,
        kept: &mut Option<Kept>,
    ) -> Result<(), Fault> {
        let Exchange { stream, reader, has_trailers } = self;
        reader.read(bytes, |piece| {
            if *has_trailers {
                return Err(Fault::unexpected("something follows the trailers of an answer"));
            }
            let outcome = match piece {
                Piece::Data(body) => {
                    if let Some(kept) = kept {
                        kept.take(body);
                    }
                    stream.take_body(body)
                }
                Piece::Whole(_, section) => {
                    let mut fields = Fields::new(kept.is_some());
                    decoder.decode(section, |name, value| fields.take(name, value))?;
                    if let (Some(kept), Some(lines)) = (kept.as_mut(), &fields.kept) {
                        kept.take_fields(fields.status, lines);
                    }
                    *has_trailers = stream.is_reading();
                    stream.take_fields(fields, *has_trailers)
                }
            };
            outcome.map_err(|fault| Fault::message(fault.what))
        })
    }
}

/// Sends as much of a request as there is room for.
fn write(stream: &mut Stream, mut out: SendStream<'_>) {
    let Some(Rest { body, sent }) = &mut stream.rest else { return };
    while *sent < body.len() {
        match out.write(&body[*sent..]) {
            Ok(count) => *sent += count,
            Err(WriteError::Blocked) => return,
            // The server wants no more of it, and may answer all the same.
            Err(_) => {
                let _ = out.reset(VarInt::from_u32(REQUEST_CANCELLED));
                stream.rest = None;
                return;
            }
        }
    }
    stream.rest = None;
    let _ = out.finish();
}

/// Nothing more is read of a stream, nor written to it.
fn cancel(quic: &mut Connection, id: StreamId, reason: u32) {
    let _ = quic.recv_stream(id).stop(VarInt::from_u32(reason));
    let _ = quic.send_stream(id).reset(VarInt::from_u32(reason));
}
