//! Messages as a server sends them: a pure state machine that can be fed any split of their bytes.
//! What comes between them, or between their parts, is dealt with here: pings get their pongs, and
//! a Close is kept.

use super::farewell::{Farewell, NO_CODE, NORMAL};
use super::frame::{self, Fault, Head, Kind, MOST_CONTROL_BYTES};

/// Pongs that wait to be sent; a server that reads none gets no more of them.
const MOST_UNSENT_BYTES: usize = 4096;

/// Where the next byte belongs.
#[derive(Debug, Clone, Copy, Default)]
enum At {
    #[default]
    Head,
    /// To a message, of whose frame so much is to come.
    Payload {
        left: u64,
        is_last: bool,
    },
    Control(Head),
    /// The server said farewell: what follows says nothing.
    End,
}

/// What the next bytes were.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Step {
    /// Bytes that were taken.
    pub used: usize,
    /// Of them, the head of a message's frame, and its payload.
    pub head_bytes: usize,
    pub payload_bytes: usize,
    /// The message is whole.
    pub is_whole: bool,
}

#[derive(Debug, Default)]
pub struct Messages {
    at: At,
    /// A frame's head, or the payload of one about the connection, that came in part.
    partial: Vec<u8>,
    /// A message has begun, and goes on with another frame.
    goes_on: bool,
    farewell: Option<Farewell>,
    /// The server sent a message that nobody had asked for.
    pub was_unasked: bool,
    /// Such messages are passed over.
    pub passes_unasked: bool,
    /// A ping of ours was answered.
    pub heard_pong: bool,
    /// Keys of ours.
    key: [u8; 4],
    /// Frames that are to be sent before the next message.
    unsent: Vec<u8>,
}

impl Messages {
    pub fn new(key: [u8; 4]) -> Messages {
        Messages { key, ..Messages::default() }
    }

    /// What the server said at the end, once it did.
    pub fn farewell(&self) -> Option<&Farewell> {
        self.farewell.as_ref()
    }

    /// Payload that comes next whatever it is, so that it may be dropped unread.
    pub fn opaque(&self) -> u64 {
        match self.at {
            At::Payload { left, .. } => left,
            At::Head | At::Control(_) | At::End => 0,
        }
    }

    /// Passes so much payload, at most [`Self::opaque`]; true where the message is whole.
    pub fn skip(&mut self, count: u64) -> bool {
        let At::Payload { left, is_last } = &mut self.at else { return false };
        *left -= count;
        let (is_over, is_last) = (*left == 0, *is_last);
        if is_over {
            self.at = At::Head;
            self.goes_on = !is_last;
        }
        is_over && is_last
    }

    /// Takes in some of the next bytes, which are some, and hands payload to `sink`; `is_awaited`: the
    /// server was asked for a message.
    pub fn feed(
        &mut self,
        input: &[u8],
        is_awaited: bool,
        sink: impl FnOnce(&[u8]),
    ) -> Result<Step, Fault> {
        match self.at {
            At::Head => self.feed_head(input, is_awaited),
            At::Payload { left, .. } => {
                let count = left.min(input.len() as u64) as usize;
                sink(&input[..count]);
                let is_whole = self.skip(count as u64);
                Ok(Step { used: count, payload_bytes: count, is_whole, ..Step::default() })
            }
            At::Control(head) => self.feed_control(head, input),
            At::End => Ok(Step { used: input.len(), ..Step::default() }),
        }
    }

    fn feed_head(&mut self, input: &[u8], is_awaited: bool) -> Result<Step, Fault> {
        let before = self.partial.len();
        let parsed = if before == 0 {
            frame::parse(input)?
        } else {
            // No head is longer.
            self.partial.extend_from_slice(&input[..input.len().min(10)]);
            frame::parse(&self.partial)?
        };
        let Some(head) = parsed else {
            if before == 0 {
                self.partial.extend_from_slice(input);
            }
            return Ok(Step { used: input.len(), ..Step::default() });
        };
        self.partial.clear();
        let used = head.len - before;
        if head.kind.is_control() {
            self.at = At::Control(head);
            return match head.payload_bytes {
                0 => self.end_control(head.kind, &[]).map(|()| Step { used, ..Step::default() }),
                _ => Ok(Step { used, ..Step::default() }),
            };
        }
        match (head.kind == Kind::Continuation, self.goes_on) {
            (true, false) => return Err(Fault::Continuation),
            (false, true) => return Err(Fault::Within),
            _ => {}
        }
        if !is_awaited && !self.passes_unasked {
            self.was_unasked = true;
            return Err(Fault::Unasked);
        }
        self.at = At::Payload { left: head.payload_bytes, is_last: head.is_last };
        // A frame may have no payload, and be the message's last.
        let is_whole = head.payload_bytes == 0 && self.skip(0);
        Ok(Step { used, head_bytes: head.len, is_whole, ..Step::default() })
    }

    fn feed_control(&mut self, head: Head, input: &[u8]) -> Result<Step, Fault> {
        let lacking = head.payload_bytes as usize - self.partial.len();
        let used = lacking.min(input.len());
        self.partial.extend_from_slice(&input[..used]);
        if used == lacking {
            let payload = std::mem::take(&mut self.partial);
            self.end_control(head.kind, &payload)?;
        }
        Ok(Step { used, ..Step::default() })
    }

    fn end_control(&mut self, kind: Kind, payload: &[u8]) -> Result<(), Fault> {
        self.at = At::Head;
        match kind {
            Kind::Close => {
                self.farewell = Some(Farewell::parse(payload)?);
                self.at = At::End;
            }
            Kind::Pong => self.heard_pong = true,
            Kind::Ping if self.unsent.len() + MOST_CONTROL_BYTES < MOST_UNSENT_BYTES => {
                self.unsent.extend(frame::masked(Kind::Pong, payload, self.key));
            }
            _ => {}
        }
        Ok(())
    }

    /// Has a ping sent, with the next pongs.
    pub fn ping(&mut self) {
        self.unsent.extend(frame::masked(Kind::Ping, &[], self.key));
    }

    /// Has pongs written; true where all have left.
    pub fn send_pongs(&mut self, write: impl FnOnce(&[u8]) -> usize) -> bool {
        if !self.unsent.is_empty() {
            let written = write(&self.unsent);
            self.unsent.drain(..written);
        }
        self.unsent.is_empty()
    }

    /// Our own farewell; None where it would come into the middle of something.
    pub fn own_farewell(&self) -> Option<Vec<u8>> {
        self.unsent.is_empty().then(|| {
            let heard = self.farewell.as_ref().map(|farewell| farewell.code);
            let code = heard.filter(|code| *code != NO_CODE).unwrap_or(NORMAL);
            frame::masked(Kind::Close, &code.to_be_bytes(), self.key)
        })
    }
}
