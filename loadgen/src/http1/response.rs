//! One answer as a pure state machine: it can be fed any split of its bytes. Where the protocol was
//! switched to WebSocket, each answer is a message.

use memchr::memmem;

use super::chunked::Chunked;
use super::head::{self, Asked, DATE_BYTES, Framing, Head, Malformed, SWITCHING};
use crate::websocket::farewell::Farewell;
use crate::websocket::messages::Messages;

/// The head seen last for one request. Most servers repeat it byte for byte but for the date,
/// and comparing is several times cheaper than parsing.
#[derive(Debug, Default)]
pub struct HeadCache {
    bytes: Vec<u8>,
    head: Option<Head>,
}

impl HeadCache {
    /// The head remembered, if there is one.
    pub fn last(&self) -> Option<&Head> {
        self.head.as_ref()
    }

    fn find(&self, input: &[u8]) -> Option<Head> {
        let head = self.head?;
        let input = input.get(..head.len)?;
        let same = match head.date_at {
            None => input == self.bytes,
            Some(at) => {
                let after = at + DATE_BYTES;
                input[..at] == self.bytes[..at]
                    && input[after..] == self.bytes[after..]
                    && !input[at..after].contains(&b'\n')
            }
        };
        same.then_some(head)
    }

    fn remember(&mut self, input: &[u8], head: Head) {
        self.bytes.clear();
        self.bytes.extend_from_slice(&input[..head.len]);
        self.head = Some(head);
    }
}

#[derive(Debug, Clone, Copy, Default)]
enum Phase {
    #[default]
    Head,
    Length(u64),
    Chunked(Chunked),
    UntilClose,
    Message,
    Done,
}

/// An answer while it arrives.
#[derive(Debug, Default)]
pub struct Response {
    phase: Phase,
    asked: Asked,
    pub keep_alive: bool,
    /// Of the final head; 0 before it was read.
    pub status: u16,
    /// Of all heads, interim answers included.
    pub head_bytes: u64,
    /// Without chunk framing.
    pub body_bytes: u64,
    /// The beginning of a head that did not arrive in one piece.
    partial: Vec<u8>,
    keeps_head: bool,
    /// The final head, where it was to be kept.
    pub kept_head: Vec<u8>,
    /// Of a WebSocket.
    pub messages: Option<Box<Messages>>,
}

impl Response {
    /// Makes ready for the answer to the next request.
    /// `keeps_head`: the final head is kept for [`Self::kept_head`].
    pub fn reset(&mut self, asked: Asked, keeps_head: bool) {
        self.keeps_head = keeps_head;
        self.phase = Phase::Head;
        self.asked = asked;
        self.keep_alive = false;
        self.status = 0;
        self.head_bytes = 0;
        self.body_bytes = 0;
        self.partial = Vec::new();
        if self.messages.is_some() {
            self.await_message();
        }
    }

    /// What follows are messages of a WebSocket.
    pub fn switch(&mut self, messages: Messages) {
        self.messages = Some(Box::new(messages));
        self.phase = Phase::Done;
    }

    fn await_message(&mut self) {
        if let Some(messages) = &mut self.messages {
            messages.passes_unasked = false;
        }
        self.phase = Phase::Message;
        self.status = SWITCHING;
        self.keep_alive = true;
    }

    pub fn is_done(&self) -> bool {
        matches!(self.phase, Phase::Done)
    }

    /// The answer is whole, and what follows isn't HTTP any more.
    pub fn is_upgraded(&self) -> bool {
        self.status == SWITCHING && self.messages.is_none()
    }

    /// How a server ended its WebSocket, once it did.
    pub fn farewell(&self) -> Option<&Farewell> {
        self.messages.as_ref()?.farewell()
    }

    pub fn has_begun(&self) -> bool {
        self.head_bytes > 0 || !self.partial.is_empty()
    }

    /// Bytes of the answer that have come, without chunk framing.
    pub fn bytes(&self) -> u64 {
        self.head_bytes + self.body_bytes + self.partial.len() as u64
    }

    /// Some of the body is there, and how much is to come nobody knows.
    pub fn is_stream(&self) -> bool {
        matches!(self.phase, Phase::Chunked(_) | Phase::UntilClose) && self.body_bytes > 0
    }

    /// Body bytes that come next whatever they are, so that they may be dropped unread.
    pub fn opaque(&self) -> u64 {
        match &self.phase {
            Phase::Length(left) => *left,
            Phase::Chunked(chunked) => chunked.opaque(),
            Phase::UntilClose => u64::MAX,
            Phase::Message => self.messages.as_ref().map_or(0, |messages| messages.opaque()),
            Phase::Head | Phase::Done => 0,
        }
    }

    /// The answer ends with [`Self::opaque`]; after a chunk comes the next one.
    pub fn ends_after_opaque(&self) -> bool {
        matches!(self.phase, Phase::Length(_))
    }

    /// Passes `count` body bytes that were dropped unread, at most [`Self::opaque`].
    pub fn skip(&mut self, count: u64) {
        self.body_bytes += count;
        match &mut self.phase {
            Phase::Length(left) => {
                *left -= count;
                if *left == 0 {
                    self.phase = Phase::Done;
                }
            }
            Phase::Chunked(chunked) => chunked.skip(count),
            Phase::Message => {
                if self.messages.as_mut().is_some_and(|messages| messages.skip(count)) {
                    self.phase = Phase::Done;
                }
            }
            Phase::UntilClose | Phase::Head | Phase::Done => {}
        }
    }

    /// A WebSocket's server sent a message that nobody had asked for.
    pub fn was_unasked(&self) -> bool {
        self.messages.as_ref().is_some_and(|messages| messages.was_unasked)
    }

    /// Takes in the next bytes, hands body bytes to `sink`, and says how many belong to this
    /// answer; fewer than given only when the answer is done. Of a WebSocket all are taken: pings may
    /// follow a message, but not another one.
    pub fn feed(
        &mut self,
        input: &[u8],
        cache: &mut HeadCache,
        mut sink: impl FnMut(&[u8]),
    ) -> Result<usize, Malformed> {
        let mut at = 0;
        while at < input.len() {
            let rest = &input[at..];
            at += match &mut self.phase {
                Phase::Head => self.feed_head(rest, cache)?,
                Phase::Length(_) | Phase::UntilClose => {
                    let count = self.opaque().min(rest.len() as u64);
                    sink(&rest[..count as usize]);
                    self.skip(count);
                    count as usize
                }
                Phase::Chunked(chunked) => {
                    let body_bytes = &mut self.body_bytes;
                    let used = chunked.feed(rest, |data| {
                        *body_bytes += data.len() as u64;
                        sink(data);
                    })?;
                    if chunked.is_done() {
                        self.phase = Phase::Done;
                    }
                    used
                }
                Phase::Message => self.feed_message(rest, &mut sink)?,
                Phase::Done if self.messages.is_some() => self.feed_message(rest, &mut sink)?,
                Phase::Done => break,
            };
        }
        Ok(at)
    }

    fn feed_message(
        &mut self,
        input: &[u8],
        sink: &mut impl FnMut(&[u8]),
    ) -> Result<usize, Malformed> {
        let is_awaited = matches!(self.phase, Phase::Message);
        let Some(messages) = &mut self.messages else { return Ok(0) };
        let step = messages.feed(input, is_awaited, sink)?;
        self.head_bytes += step.head_bytes as u64;
        self.body_bytes += step.payload_bytes as u64;
        self.keep_alive &= messages.farewell().is_none();
        if step.is_whole {
            self.phase = Phase::Done;
        }
        Ok(step.used)
    }

    /// The server sent its last byte: fine when that is what ends this answer.
    pub fn end_of_stream(&mut self) -> bool {
        if matches!(self.phase, Phase::UntilClose) {
            self.phase = Phase::Done;
        }
        self.is_done()
    }

    fn feed_head(&mut self, input: &[u8], cache: &mut HeadCache) -> Result<usize, Malformed> {
        if !self.partial.is_empty() {
            return self.feed_partial(input);
        }
        if let Some(head) = cache.find(input) {
            self.head_done(&head, input);
            return Ok(head.len);
        }
        match head::parse(input, self.asked)? {
            None => {
                self.partial.extend_from_slice(input);
                Ok(input.len())
            }
            Some(head) => {
                if !head.is_interim() {
                    cache.remember(input, head);
                }
                self.head_done(&head, input);
                Ok(head.len)
            }
        }
    }

    /// Goes on with a head that came in pieces; parses anew only when its end may be there.
    fn feed_partial(&mut self, input: &[u8]) -> Result<usize, Malformed> {
        let before = self.partial.len();
        self.partial.extend_from_slice(input);
        let tail = &self.partial[before.saturating_sub(3)..];
        let may_end = memmem::find(tail, b"\n\n").is_some()
            || memmem::find(tail, b"\n\r\n").is_some()
            || self.partial.len() > head::MAX_HEAD_BYTES
            || before < 8;
        if !may_end {
            return Ok(input.len());
        }
        let Some(head) = head::parse(&self.partial, self.asked)? else {
            return Ok(input.len());
        };
        let partial = std::mem::take(&mut self.partial);
        self.head_done(&head, &partial);
        Ok(head.len - before)
    }

    fn head_done(&mut self, head: &Head, bytes: &[u8]) {
        self.head_bytes += head.len as u64;
        if head.is_interim() {
            return;
        }
        if self.keeps_head {
            self.kept_head.clear();
            self.kept_head.extend_from_slice(&bytes[..head.len]);
        }
        self.status = head.status;
        self.keep_alive = head.keep_alive;
        self.phase = match head.framing {
            Framing::Length(0) => Phase::Done,
            Framing::Length(length) => Phase::Length(length),
            Framing::Chunked => Phase::Chunked(Chunked::begin()),
            Framing::UntilClose => Phase::UntilClose,
        };
    }
}
