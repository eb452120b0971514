//! An HTTP/2 connection, shared by many requests: its wire, which is read and written without
//! waiting, a batch of frames at a time.

use std::cell::RefCell;
use std::io;

use rustix::net::RecvFlags;

use super::dialog::{Dialog, Kept};
use super::stream::{Outcome, Reading, Stream};
use crate::engine::flight::Flight;
use crate::engine::socket::Got;
use crate::engine::wire::Wire;
use crate::events::EventStream;
use crate::http2::frame;
use crate::http2::reader::Reader;
use crate::http2::request::Message;
use crate::http2::trouble::{ConnectionEnd, Lost};

/// The most that is read at once. A frame that isn't whole takes a quarter of it at most.
const READ_BYTES: usize = 64 * 1024;

thread_local! {
    static INCOMING: RefCell<Vec<u8>> = RefCell::new(vec![0; READ_BYTES]);
}

pub struct Http2Connection {
    /// None once it is lost.
    wire: Option<Wire>,
    reader: Reader,
    dialog: Dialog,
    /// The beginning of a frame of which the rest hasn't come.
    incoming: Vec<u8>,
    /// Nothing more is there to be read until an event says so.
    drained: bool,
    /// The other side closed: whatever is left is read to the end.
    hangup: bool,
    /// There is no room to write until an event says so.
    stuck: bool,
    /// When what was read last had arrived; 0 where the kernel doesn't report it.
    pub arrived_ns: u64,
    /// When a request was sent last, and when one was answered last; 0 before.
    pub sent_ns: u64,
    pub answered_ns: u64,
}

impl Http2Connection {
    /// Begins HTTP/2 on an open connection. It is ready when the server's settings are known, so
    /// that whoever answers does speak HTTP/2.
    pub fn begin(wire: Wire) -> Http2Connection {
        Http2Connection {
            wire: Some(wire),
            reader: Reader::default(),
            dialog: Dialog::begin(),
            incoming: Vec::new(),
            drained: false,
            hangup: false,
            stuck: false,
            arrived_ns: 0,
            sent_ns: 0,
            answered_ns: 0,
        }
    }

    /// Has what comes kept as well, of a connection for one request.
    pub fn keeping(mut self, kept: Kept) -> Http2Connection {
        self.reader.keeps_fields = true;
        self.dialog.kept = Some(kept);
        self
    }

    /// What came so far, where it is kept.
    pub fn kept(&self) -> Option<&Kept> {
        self.dialog.kept.as_ref()
    }

    pub fn into_kept(self) -> Option<Kept> {
        self.dialog.kept
    }

    /// None once it is lost.
    pub fn wire(&self) -> Option<&Wire> {
        self.wire.as_ref()
    }

    /// Nothing can be written until there is room.
    pub fn is_stuck(&self) -> bool {
        self.stuck
    }

    /// There may be more to read, and room to write.
    pub fn arrived(&mut self, hangup: bool) {
        (self.drained, self.stuck) = (false, false);
        self.hangup |= hangup;
    }

    /// Reads and writes once; true when there is more to read.
    pub fn move_frames(&mut self) -> bool {
        if let Err(lost) = self.read() {
            self.lose(lost);
        } else if let Err(error) = self.write() {
            let lost = self.read_the_rest(error);
            self.lose(lost);
        }
        self.wire.is_some() && !self.drained
    }

    #[inline]
    fn read(&mut self) -> Result<(), Lost> {
        let Some(wire) = self.wire.as_mut().filter(|_| !self.drained) else { return Ok(()) };
        INCOMING.with_borrow_mut(|incoming| {
            let kept = self.incoming.len();
            incoming[..kept].copy_from_slice(&self.incoming);
            let count = match wire.read(&mut incoming[kept..], RecvFlags::empty()) {
                Ok(Got::Bytes { count, drained }) => {
                    self.drained = drained && !self.hangup;
                    count
                }
                Ok(Got::Nothing) => {
                    self.drained = true;
                    return Ok(());
                }
                Ok(Got::End { .. }) => return Err(Lost::Closed),
                Err(error) => return Err(Lost::Broken(error)),
            };
            self.arrived_ns = wire.arrived_ns;
            let came = &incoming[..kept + count];
            let done = self.reader.read(came, &mut self.dialog).map_err(Lost::Fault)?;
            self.incoming.clear();
            self.incoming.extend_from_slice(&came[done..]);
            Ok(())
        })
    }

    #[inline]
    fn write(&mut self) -> io::Result<()> {
        let Some(wire) = self.wire.as_mut().filter(|_| !self.stuck) else { return Ok(()) };
        self.dialog.put_bodies();
        if !self.dialog.outgoing.is_empty() {
            let count = wire.write(&self.dialog.outgoing)?;
            self.dialog.sent(count);
        }
        self.stuck = !wire.flush()? || !self.dialog.outgoing.is_empty();
        Ok(())
    }

    /// Nothing can be written any more, but answers may have come before that, or why it ends.
    fn read_the_rest(&mut self, error: io::Error) -> Lost {
        self.drained = false;
        while !self.drained {
            if let Err(lost) = self.read() {
                return lost;
            }
        }
        Lost::Broken(error)
    }

    fn lose(&mut self, lost: Lost) {
        if let (Lost::Fault(fault), Some(wire)) = (&lost, &mut self.wire) {
            // The server gets the reason, if that can be sent at once.
            frame::write_go_away(&mut self.dialog.outgoing, fault.code);
            let _ = wire.write(&self.dialog.outgoing);
        }
        self.wire = None;
        self.dialog.lose(lost);
    }

    /// Something can be sent at once.
    pub fn is_dirty(&self) -> bool {
        self.wire.is_some() && !self.stuck && self.dialog.has_more()
    }

    /// The rest of an answer is lacking, or that of a request.
    pub fn is_unfinished(&self) -> bool {
        self.stuck || self.dialog.is_unfinished()
    }

    /// The connection takes more requests.
    pub fn is_usable(&self) -> bool {
        self.dialog.end.is_none()
    }

    /// Why it takes no more.
    pub fn into_end(self) -> Option<ConnectionEnd> {
        self.dialog.end
    }

    /// Requests on their way.
    pub fn in_flight(&self) -> usize {
        self.dialog.in_flight
    }

    /// Streams the server allows at a time; 0 before its settings are known.
    pub fn allowed(&self) -> usize {
        self.dialog.allowed.unwrap_or(0)
    }

    /// Another request can be sent now.
    pub fn has_room(&self) -> bool {
        self.is_usable() && self.in_flight() < self.allowed()
    }

    /// Hands over a request for a stream of a number of ours, where there is room for one.
    pub fn send(
        &mut self,
        number: usize,
        flight: Flight,
        message: &Message,
        is_head: bool,
        reading: Reading,
    ) {
        self.sent_ns = flight.sent_ns;
        self.dialog.send(number, flight, message, is_head, reading);
    }

    /// Hands over the events that came since the last time, before their requests end.
    pub fn take_events(&mut self, take: impl FnMut(&Flight, &mut Option<Box<EventStream>>)) {
        self.dialog.take_events(take);
    }

    /// The next request whose fate is known.
    pub fn next_ended(&mut self, now_ns: u64) -> Option<(Flight, Outcome)> {
        let ended = self.dialog.next_ended(now_ns);
        if matches!(ended, Some((_, Outcome::Answered(_)))) {
            self.answered_ns = now_ns;
        }
        ended
    }

    /// Gives up the requests that were sent by `sent_ns` and whose answers are lacking; their streams
    /// are cancelled.
    pub fn take_late(&mut self, sent_ns: u64) -> Vec<Stream> {
        self.dialog.take_where(|stream| stream.flight.sent_ns <= sent_ns)
    }

    /// Gives up the streams of responses that are under way and have no length, where `which` says so.
    pub fn take_streams(&mut self, which: impl Fn(&Flight) -> bool) -> Vec<Stream> {
        self.dialog.take_where(|stream| stream.is_endless() && which(&stream.flight))
    }

    pub fn flights(&self) -> impl Iterator<Item = &Flight> {
        self.dialog.streams().map(|stream| &stream.flight)
    }

    /// Takes no more requests; those in flight are still answered.
    pub fn retire(&mut self) {
        self.dialog.finish(ConnectionEnd::Retired);
    }
}
