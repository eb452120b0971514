//! A connection of HTTP/2 or HTTP/3, which several requests share.

use std::collections::VecDeque;

use either::Either;

use super::flight::Flight;
use super::http2::connection::Http2Connection;
use super::http2::dialog::Kept;
use super::http2::stream::{Outcome, Reading, Stream};
use super::http3::connection::Http3Connection;
use super::plan::Ready;
use crate::events::EventStream;
use crate::http2::trouble::ConnectionEnd;

#[derive(Default)]
pub struct Shared {
    /// Once it is begun.
    pub connection: Option<SharedConnection>,
    /// Requests that wait for the connection, or for a stream of it.
    pub waiting: VecDeque<Flight>,
}

/// That of HTTP/2 is reached without another pointer.
#[expect(clippy::large_enum_variant)]
pub enum SharedConnection {
    Http2(Http2Connection),
    Http3(Box<Http3Connection>),
}

/// Both kinds do it.
macro_rules! both {
    ($connection:expr, $of_either:ident => $act:expr) => {
        match $connection {
            SharedConnection::Http2($of_either) => $act,
            SharedConnection::Http3($of_either) => $act,
        }
    };
}

impl SharedConnection {
    /// There may be more to read, and room to write.
    #[inline]
    pub fn arrived(&mut self, hangup: bool) {
        match self {
            SharedConnection::Http2(connection) => connection.arrived(hangup),
            SharedConnection::Http3(connection) => connection.arrived(),
        }
    }

    /// Reads and writes once; true when there is more to read.
    #[inline]
    pub fn move_frames(&mut self) -> bool {
        both!(self, connection => connection.move_frames())
    }

    /// Something can be sent at once.
    #[inline]
    pub fn is_dirty(&self) -> bool {
        both!(self, connection => connection.is_dirty())
    }

    /// The rest of an answer is lacking, or that of a request.
    pub fn is_unfinished(&self) -> bool {
        match self {
            SharedConnection::Http2(connection) => connection.is_unfinished(),
            // Nothing of it lies unread (see the plan).
            SharedConnection::Http3(_) => false,
        }
    }

    /// It takes more requests.
    #[inline]
    pub fn is_usable(&self) -> bool {
        both!(self, connection => connection.is_usable())
    }

    /// Why it takes no more.
    pub fn into_end(self) -> Option<ConnectionEnd> {
        match self {
            SharedConnection::Http2(connection) => connection.into_end(),
            SharedConnection::Http3(mut connection) => connection.take_end(),
        }
    }

    /// Requests on their way.
    #[inline]
    pub fn in_flight(&self) -> usize {
        both!(self, connection => connection.in_flight())
    }

    /// Requests that there may be on their way at a time; 0 before that is known.
    #[inline]
    pub fn allowed(&self) -> usize {
        both!(self, connection => connection.allowed())
    }

    /// Another request can be sent now.
    #[inline]
    pub fn has_room(&self) -> bool {
        both!(self, connection => connection.has_room())
    }

    /// When a request was sent last, and when one was answered last; 0 before.
    #[inline]
    pub fn sent_ns(&self) -> u64 {
        both!(self, connection => connection.sent_ns)
    }

    #[inline]
    pub fn answered_ns(&self) -> u64 {
        both!(self, connection => connection.answered_ns)
    }

    /// When what was read last had arrived; 0 where the kernel doesn't report it.
    #[inline]
    pub fn arrived_ns(&self) -> u64 {
        match self {
            SharedConnection::Http2(connection) => connection.arrived_ns,
            SharedConnection::Http3(_) => 0,
        }
    }

    /// Hands over a request for a stream of a number of ours, where there is room for one.
    #[inline]
    pub fn send(&mut self, number: usize, flight: Flight, request: &Ready, reading: Reading) {
        let is_head = request.asked.head;
        match (self, &request.message, &request.frames) {
            (SharedConnection::Http2(connection), Some(message), _) => {
                connection.send(number, flight, message, is_head, reading);
            }
            (SharedConnection::Http3(connection), _, Some(frames)) => {
                connection.send(flight, frames, is_head, reading);
            }
            _ => {}
        }
    }

    /// Hands over the events that came since the last time, before their requests end.
    #[inline]
    pub fn take_events(&mut self, take: impl FnMut(&Flight, &mut Option<Box<EventStream>>)) {
        both!(self, connection => connection.take_events(take));
    }

    /// The next request whose fate is known.
    #[inline]
    pub fn next_ended(&mut self, now_ns: u64) -> Option<(Flight, Outcome)> {
        both!(self, connection => connection.next_ended(now_ns))
    }

    /// Gives up the requests that were sent by `sent_ns` and whose answers are lacking.
    pub fn take_late(&mut self, sent_ns: u64) -> Vec<Stream> {
        both!(self, connection => connection.take_late(sent_ns))
    }

    /// Gives up the streams of responses that are under way and have no length, where `which` says so.
    pub fn take_streams(&mut self, which: impl Fn(&Flight) -> bool) -> Vec<Stream> {
        both!(self, connection => connection.take_streams(which))
    }

    pub fn flights(&self) -> impl Iterator<Item = &Flight> {
        match self {
            SharedConnection::Http2(connection) => Either::Left(connection.flights()),
            SharedConnection::Http3(connection) => Either::Right(connection.flights()),
        }
    }

    /// Takes no more requests; those in flight are still answered.
    pub fn retire(&mut self) {
        both!(self, connection => connection.retire());
    }

    /// What came so far, where it is kept.
    pub fn kept(&self) -> Option<&Kept> {
        both!(self, connection => connection.kept())
    }

    pub fn into_kept(self) -> Option<Kept> {
        match self {
            SharedConnection::Http2(connection) => connection.into_kept(),
            SharedConnection::Http3(mut connection) => connection.take_kept(),
        }
    }

    pub fn http3(&mut self) -> Option<&mut Http3Connection> {
        match self {
            SharedConnection::Http2(_) => None,
            SharedConnection::Http3(connection) => Some(connection),
        }
    }
}
