//! An HTTP/3 connection, shared by many requests: its socket, which is read and written without
//! waiting, several datagrams at a time, QUIC, and what is said over it.

use std::cell::RefCell;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use bytes::Bytes;
use quinn_proto::{
    Connection, ConnectionHandle, DatagramEvent, Endpoint, Event, StreamEvent, Transmit, VarInt,
};
use rustls::pki_types::ServerName;

use super::dialer::{Dialer, instant, nanoseconds};
use super::dialog::Dialog;
use super::socket::Socket;
use crate::clock::now_ns;
use crate::engine::flight::Flight;
use crate::engine::http2::dialog::Kept;
use crate::engine::http2::stream::{Outcome, Reading, Stream};
use crate::events::EventStream;
use crate::http2::trouble::ConnectionEnd;
use crate::http3::code::{Fault, NO_ERROR};
use crate::http3::trouble::Lost;
use crate::tls::take_verdict;

thread_local! {
    static OUTGOING: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

pub struct Http3Connection {
    socket: Socket,
    endpoint: Endpoint,
    handle: ConnectionHandle,
    quic: Connection,
    dialog: Dialog,
    /// The handshake is done.
    is_ready: bool,
    /// What came of the server's certificate, where it was looked at.
    verdict: Option<Result<(), rustls::Error>>,
    /// Nothing more is there to be read until an event says so.
    drained: bool,
    /// There may be something to send.
    dirty: bool,
    /// Datagrams for which there is no room until an event says so.
    stuck: Option<(Transmit, Vec<u8>)>,
    /// When its thread looks after its times; `u64::MAX` where that isn't arranged.
    pub looked_after_ns: u64,
    /// When a request was sent last, and when one was answered last; 0 before.
    pub sent_ns: u64,
    pub answered_ns: u64,
}

impl Http3Connection {
    /// Begins a connection for so many requests at a time.
    pub fn open(
        dialer: &Dialer,
        address: SocketAddr,
        source: Option<IpAddr>,
        name: &ServerName<'_>,
        streams: usize,
    ) -> io::Result<Http3Connection> {
        let socket = Socket::open(address, source)?;
        let dialed = dialer.dial(address, name, socket.may_fragment());
        let (endpoint, handle, quic) = dialed.map_err(io::Error::other)?;
        Ok(Http3Connection {
            socket,
            endpoint,
            handle,
            quic,
            dialog: Dialog::new(streams),
            is_ready: false,
            verdict: None,
            drained: true,
            dirty: true,
            stuck: None,
            looked_after_ns: u64::MAX,
            sent_ns: 0,
            answered_ns: 0,
        })
    }

    /// Has what comes kept as well, of a connection for one request.
    pub fn keeping(mut self, kept: Kept) -> Http3Connection {
        self.dialog.kept = Some(kept);
        self
    }

    /// What came so far, where it is kept.
    pub fn kept(&self) -> Option<&Kept> {
        self.dialog.kept.as_ref()
    }

    pub fn take_kept(&mut self) -> Option<Kept> {
        self.dialog.kept.take()
    }

    /// There may be more to read, and room to write.
    pub fn arrived(&mut self) {
        self.drained = false;
        self.dirty |= self.stuck.is_some();
    }

    /// Nothing can be written until there is room.
    pub fn is_stuck(&self) -> bool {
        self.stuck.is_some()
    }

    /// Sends what was to be sent, and reads once; true when there is more to read. What is read is
    /// acknowledged with what is sent next.
    pub fn move_frames(&mut self) -> bool {
        let now_ns = now_ns();
        if self.dirty {
            self.transmit(now_ns);
        }
        if self.next_ns() <= now_ns {
            self.quic.handle_timeout(instant(now_ns));
            self.dirty = true;
        }
        if !self.drained {
            self.receive(now_ns);
        }
        self.hear(now_ns);
        !self.drained
    }

    /// When QUIC wants to do something, though nothing came.
    pub fn next_ns(&mut self) -> u64 {
        self.quic.poll_timeout().map_or(u64::MAX, nanoseconds)
    }

    fn receive(&mut self, now_ns: u64) {
        let Http3Connection { socket, endpoint, quic, handle, dirty, .. } = self;
        let now = instant(now_ns);
        let mut replies = Vec::new();
        let all = socket.receive(|address, ecn, datagram| {
            *dirty = true;
            let event = endpoint.handle(now, address, None, ecn, datagram, &mut replies);
            if let Some(DatagramEvent::ConnectionEvent(of, event)) = event
                && of == *handle
            {
                quic.handle_event(event);
            }
        });
        if !self.is_ready {
            self.verdict = self.verdict.take().or_else(take_verdict);
        }
        match all {
            Ok(all) => self.drained = all,
            Err(error) => self.lose(Lost::Broken(error)),
        }
    }

    fn transmit(&mut self, now_ns: u64) {
        self.dirty = false;
        if let Some((transmit, bytes)) = self.stuck.take()
            && !self.send_datagrams(transmit, &bytes)
        {
            return;
        }
        OUTGOING.with_borrow_mut(|outgoing| {
            loop {
                outgoing.clear();
                let most = self.socket.most_segments();
                let transmit = self.quic.poll_transmit(instant(now_ns), most, outgoing);
                let Some(transmit) = transmit else { return };
                if !self.send_datagrams(transmit, outgoing) {
                    return;
                }
            }
        });
    }

    /// False where they couldn't be sent.
    fn send_datagrams(&mut self, transmit: Transmit, bytes: &[u8]) -> bool {
        match self.socket.send(&transmit, bytes) {
            Ok(true) => true,
            Ok(false) => {
                self.stuck = Some((transmit, bytes.to_vec()));
                false
            }
            Err(error) => {
                self.lose(Lost::Broken(error));
                false
            }
        }
    }

    /// Takes note of what QUIC has to say.
    fn hear(&mut self, now_ns: u64) {
        while let Some(event) = self.quic.poll_endpoint_events() {
            if let Some(event) = self.endpoint.handle_event(self.handle, event) {
                self.quic.handle_event(event);
            }
        }
        while let Some(event) = self.quic.poll() {
            if let Err(fault) = self.on_event(event) {
                let code = VarInt::from_u32(fault.code);
                let reason = Bytes::from_static(fault.what.as_bytes());
                self.quic.close(instant(now_ns), code, reason);
                self.lose(Lost::Fault(fault));
            }
        }
        if self.is_ready {
            self.dialog.open_streams(&mut self.quic);
        }
    }

    fn on_event(&mut self, event: Event) -> Result<(), Fault> {
        let quic = &mut self.quic;
        match event {
            Event::Connected => {
                self.is_ready = true;
                self.dirty = true;
                self.dialog.begin(quic)
            }
            Event::ConnectionLost { reason } => {
                self.lose(Lost::Quic(reason));
                Ok(())
            }
            Event::Stream(StreamEvent::Opened { .. }) => self.dialog.accept(quic),
            Event::Stream(StreamEvent::Readable { id }) => self.dialog.read(quic, id),
            Event::Stream(StreamEvent::Writable { id } | StreamEvent::Stopped { id, .. }) => {
                self.dialog.go_on_sending(quic, id);
                Ok(())
            }
            Event::Stream(StreamEvent::Finished { .. } | StreamEvent::Available { .. })
            | Event::HandshakeDataReady
            | Event::DatagramReceived
            | Event::DatagramsUnblocked => Ok(()),
        }
    }

    fn lose(&mut self, lost: Lost) {
        self.drained = true;
        self.dialog.lose(lost);
    }

    /// Something can be sent at once.
    pub fn is_dirty(&self) -> bool {
        self.dirty && self.stuck.is_none()
    }

    /// The handshake is done, and a request can be sent.
    pub fn is_open(&self) -> bool {
        self.is_ready && self.is_usable() && self.dialog.allowed() > 0
    }

    /// The connection takes more requests.
    pub fn is_usable(&self) -> bool {
        self.dialog.end.is_none()
    }

    /// Why it takes no more.
    pub fn take_end(&mut self) -> Option<ConnectionEnd> {
        self.dialog.end.take()
    }

    /// How it was lost, where it was; and what came of the server's certificate.
    pub fn take_lost(&mut self) -> Option<(Lost, Option<rustls::Error>)> {
        let lost = self.dialog.lost.take()?;
        Some((lost, self.verdict.take().and_then(Result::err)))
    }

    /// The session of an earlier connection was resumed: nobody had to look at a certificate.
    pub fn was_resumed(&self) -> bool {
        self.verdict.is_none()
    }

    /// Requests on their way.
    pub fn in_flight(&self) -> usize {
        self.dialog.in_flight()
    }

    /// Requests that there may be on their way at a time, as far as the server has said so.
    pub fn allowed(&self) -> usize {
        self.dialog.allowed()
    }

    /// Another request can be sent now.
    pub fn has_room(&self) -> bool {
        self.dialog.has_room()
    }

    /// Hands over a request, where there is room for one.
    pub fn send(&mut self, flight: Flight, frames: &Arc<[u8]>, is_head: bool, reading: Reading) {
        self.sent_ns = flight.sent_ns;
        self.dirty = true;
        self.dialog.send(&mut self.quic, flight, frames, is_head, reading);
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
        self.take_where(|stream| stream.flight.sent_ns <= sent_ns)
    }

    /// Gives up the streams of responses that are under way and have no length, where `which` says so.
    pub fn take_streams(&mut self, which: impl Fn(&Flight) -> bool) -> Vec<Stream> {
        self.take_where(|stream| stream.is_endless() && which(&stream.flight))
    }

    fn take_where(&mut self, which: impl Fn(&Stream) -> bool) -> Vec<Stream> {
        self.dirty = true;
        let taken = self.dialog.take_where(&mut self.quic, which);
        self.dialog.open_streams(&mut self.quic);
        taken
    }

    pub fn flights(&self) -> impl Iterator<Item = &Flight> {
        self.dialog.flights()
    }

    /// Takes no more requests; those in flight are still answered.
    pub fn retire(&mut self) {
        self.dialog.finish(ConnectionEnd::Retired);
    }

    /// Nobody looks after it for a while: what came is acknowledged now, so that the server doesn't
    /// send it again and again.
    pub fn rest(&mut self) {
        if self.is_ready && self.is_usable() {
            self.quic.ping();
            self.transmit(now_ns());
        }
        self.looked_after_ns = u64::MAX;
    }
}

impl AsFd for Http3Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Drop for Http3Connection {
    /// The server hears of it, and keeps nothing for a client that is gone.
    fn drop(&mut self) {
        let now_ns = now_ns();
        self.quic.close(instant(now_ns), VarInt::from_u32(NO_ERROR), Bytes::new());
        self.transmit(now_ns);
    }
}
