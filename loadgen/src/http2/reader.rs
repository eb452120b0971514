//! Frames read out of what has come, in whatever pieces, and checked as far as that needs no
//! knowledge of streams. Bodies are handed over as they come; other frames when they are whole.

use super::code::Fault;
use super::fields::Fields;
use super::frame::{self, Head};
use super::hpack::Decoder;
use crate::http1::head::MAX_HEAD_BYTES;

/// What frames are about. Errors end the connection.
pub trait Handler {
    /// A list of header fields; `ends`: nothing follows on its stream.
    fn on_fields(&mut self, stream: u32, fields: Fields, ends: bool) -> Result<(), Fault>;
    /// A DATA frame begins, which counts as so much in flow control.
    fn on_data(&mut self, stream: u32, bytes: u32) -> Result<(), Fault>;
    /// Some of its body.
    fn on_body(&mut self, stream: u32, body: &[u8]) -> Result<(), Fault>;
    /// Nothing follows on a stream.
    fn on_end(&mut self, stream: u32);
    fn on_reset(&mut self, stream: u32, code: u32) -> Result<(), Fault>;
    fn on_settings(&mut self, settings: impl Iterator<Item = (u16, u32)>) -> Result<(), Fault>;
    fn on_ping(&mut self, opaque: &[u8]) -> Result<(), Fault>;
    /// The server takes no more requests, and has seen none after that of stream `last`.
    fn on_go_away(&mut self, last: u32, code: u32);
    /// More may be sent.
    fn on_window(&mut self, stream: u32, by: u32) -> Result<(), Fault>;
}

#[derive(Debug, Default)]
pub struct Reader {
    decoder: Decoder,
    /// Fields are kept as they come.
    pub keeps_fields: bool,
    /// The server's settings have come.
    has_begun: bool,
    /// The DATA frame that hasn't come in full.
    data: Option<Data>,
    /// The header block that hasn't, and its bytes so far.
    open: Option<Block>,
    block: Vec<u8>,
}

#[derive(Debug, Clone, Copy)]
struct Data {
    stream: u32,
    /// What is to come of it.
    body: usize,
    padding: usize,
    ends: bool,
}

#[derive(Debug, Clone, Copy)]
struct Block {
    stream: u32,
    ends: bool,
    /// Of its frames.
    bytes: usize,
}

impl Reader {
    /// Reads what has come; how much of it. The rest is the beginning of a frame.
    pub fn read(&mut self, bytes: &[u8], handler: &mut impl Handler) -> Result<usize, Fault> {
        let mut rest = bytes;
        loop {
            if let Some(data) = self.data.take() {
                rest = self.go_on(data, rest, handler)?;
            }
            let Some(head) = Head::read(rest) else { break };
            self.check(&head)?;
            let payload = &rest[frame::HEAD_BYTES..];
            if head.kind == frame::DATA {
                let Some(begin) = self.on_data(&head, payload, handler)? else { break };
                rest = &payload[begin..];
                continue;
            }
            let Some((payload, after)) = payload.split_at_checked(head.length) else { break };
            self.on_frame(&head, payload, handler)?;
            rest = after;
        }
        Ok(bytes.len() - rest.len())
    }

    /// Whether a frame may come now, so long and on that stream.
    fn check(&self, head: &Head) -> Result<(), Fault> {
        let Head { kind, stream, .. } = *head;
        // Section 3.4. A server that can't serve anybody may say so.
        if !self.has_begun && !matches!(kind, frame::SETTINGS | frame::GOAWAY) {
            return Err(Fault::protocol("the first thing it says is not SETTINGS"));
        }
        if head.length > frame::PAYLOAD_BYTES {
            return Err(Fault::size("a frame is larger than we allowed"));
        }
        // Section 6.10: nothing comes in between.
        let goes_on = self.open.as_ref().map(|block| (frame::CONTINUATION, block.stream));
        let fits = match goes_on {
            Some(wanted) => (kind, stream) == wanted,
            None => kind != frame::CONTINUATION,
        };
        if !fits {
            return Err(Fault::protocol("a header block doesn't go on where it stopped"));
        }
        let is_right = match kind {
            frame::SETTINGS | frame::PING | frame::GOAWAY => stream == 0,
            frame::DATA..=frame::RST_STREAM | frame::CONTINUATION => stream != 0,
            _ => true,
        };
        match is_right {
            true => Ok(()),
            false => {
                Err(Fault::protocol("a frame for a stream is on none, or the other way round"))
            }
        }
    }

    /// A DATA frame begins: where its body does, if that is known already.
    fn on_data(
        &mut self,
        head: &Head,
        payload: &[u8],
        handler: &mut impl Handler,
    ) -> Result<Option<usize>, Fault> {
        let Some(padding) = head.padding(payload) else { return Ok(None) };
        let begin = usize::from(head.has(frame::PADDED));
        let body = head.length.checked_sub(begin + padding);
        let body = body.ok_or(Fault::protocol("a DATA frame is shorter than its padding"))?;
        handler.on_data(head.stream, head.length as u32)?;
        let ends = head.has(frame::END_STREAM);
        self.data = Some(Data { stream: head.stream, body, padding, ends });
        Ok(Some(begin))
    }

    /// Hands over what has come of a DATA frame; what comes behind it.
    fn go_on<'a>(
        &mut self,
        mut data: Data,
        bytes: &'a [u8],
        handler: &mut impl Handler,
    ) -> Result<&'a [u8], Fault> {
        let (body, rest) = bytes.split_at(data.body.min(bytes.len()));
        let (padding, rest) = rest.split_at(data.padding.min(rest.len()));
        if !body.is_empty() {
            handler.on_body(data.stream, body)?;
        }
        data.body -= body.len();
        data.padding -= padding.len();
        if data.body + data.padding > 0 {
            self.data = Some(data);
        } else if data.ends {
            handler.on_end(data.stream);
        }
        Ok(rest)
    }

    fn on_frame(
        &mut self,
        head: &Head,
        payload: &[u8],
        handler: &mut impl Handler,
    ) -> Result<(), Fault> {
        let stream = head.stream;
        match head.kind {
            frame::HEADERS => {
                let block = head.block(payload)?;
                let ends = head.has(frame::END_STREAM);
                if head.has(frame::END_HEADERS) {
                    return self.on_block(stream, ends, block, handler);
                }
                self.open = Some(Block { stream, ends, bytes: 0 });
                self.on_piece(block)
            }
            frame::CONTINUATION => {
                self.on_piece(payload)?;
                let Some(Block { stream, ends, .. }) =
                    self.open.take_if(|_| head.has(frame::END_HEADERS))
                else {
                    return Ok(());
                };
                let block = std::mem::take(&mut self.block);
                self.on_block(stream, ends, &block, handler)
            }
            frame::PRIORITY if payload.len() != frame::PRIORITY_BYTES => Err(WRONG_SIZE),
            frame::RST_STREAM => handler.on_reset(stream, number(payload)?),
            frame::SETTINGS => self.on_settings(head, payload, handler),
            frame::PUSH_PROMISE => Err(Fault::protocol("it pushes, which we said it shall not")),
            frame::PING if payload.len() != 8 => Err(WRONG_SIZE),
            frame::PING if head.has(frame::ACK) => Ok(()),
            frame::PING => handler.on_ping(payload),
            frame::GOAWAY => {
                let (last, code) = payload.split_at_checked(4).ok_or(WRONG_SIZE)?;
                let code = number(code.get(..4).ok_or(WRONG_SIZE)?)?;
                handler.on_go_away(number(last)? & frame::LAST_STREAM, code);
                Ok(())
            }
            frame::WINDOW_UPDATE => match number(payload)? & frame::LAST_STREAM {
                0 => Err(Fault::protocol("it opens a flow control window by nothing")),
                by => handler.on_window(stream, by),
            },
            // Unknown ones say nothing (section 5.5), and priorities nothing to us.
            _ => Ok(()),
        }
    }

    fn on_piece(&mut self, piece: &[u8]) -> Result<(), Fault> {
        self.block.extend_from_slice(piece);
        if let Some(block) = &mut self.open {
            block.bytes += frame::HEAD_BYTES + piece.len();
            if block.bytes > MAX_HEAD_BYTES {
                return Err(Fault::excess("a header block doesn't end"));
            }
        }
        Ok(())
    }

    fn on_block(
        &mut self,
        stream: u32,
        ends: bool,
        block: &[u8],
        handler: &mut impl Handler,
    ) -> Result<(), Fault> {
        let mut fields = Fields::new(self.keeps_fields);
        self.decoder.decode(block, |name, value| fields.take(name, value))?;
        handler.on_fields(stream, fields, ends)
    }

    fn on_settings(
        &mut self,
        head: &Head,
        payload: &[u8],
        handler: &mut impl Handler,
    ) -> Result<(), Fault> {
        match head.has(frame::ACK) {
            true if payload.is_empty() => Ok(()),
            false if payload.len().is_multiple_of(frame::SETTING_BYTES) => {
                self.has_begun = true;
                handler.on_settings(frame::settings(payload))
            }
            _ => Err(WRONG_SIZE),
        }
    }
}

const WRONG_SIZE: Fault = Fault::size("a frame is not as long as its kind is");

fn number(payload: &[u8]) -> Result<u32, Fault> {
    payload.try_into().map(u32::from_be_bytes).map_err(|_| WRONG_SIZE)
}
