//! One request and its answer on a stream of a link.

use std::future::poll_fn;

use h2::client::ResponseFuture;
use h2::{Reason, RecvStream};
use http::HeaderMap;
use http::header::{CONTENT_LENGTH, SET_COOKIE};
use sha2::{Digest, Sha256};

use super::books::{Answer, Outcome};
use super::slot::Slot;
use crate::engine::clock::now_ns;
use crate::http2::{Link, Message, Permit, Trouble};
use crate::schedule::Ask;

/// Sends a request and reads its answer.
pub async fn exchange(
    slot: &Slot,
    lane: usize,
    permit: &Permit,
    message: &Message,
    ask: Ask,
) -> Outcome {
    let link = permit.link();
    let Some(answer) = send(slot, lane, permit, message).await else { return Outcome::Unsent };
    link.retire_if_full();
    let (head, body) = match answer.await {
        Ok(answer) => answer.into_parts(),
        Err(error) => return trouble(slot, &error, false, false),
    };
    let first_byte_ns = now_ns();
    if slot.plan.order.load.cookies {
        keep_cookies(link, &head.headers);
    }
    let mut reading = Reading {
        announced: announced(slot, ask, &head.headers),
        bytes: 0,
        hash: slot.hash_for(ask.request),
    };
    let ends_here = body.is_end_stream();
    if let Err(error) = reading.read(body).await {
        return trouble(slot, &error, true, reading.is_lacking());
    }
    let done_ns = if ends_here { first_byte_ns } else { now_ns() };
    link.answered_ns.set(done_ns);
    Outcome::Answered(Answer {
        status: head.status.as_u16(),
        head_bytes: decoded_bytes(&head.headers),
        body_bytes: reading.bytes,
        hash: reading.hash,
        first_byte_ns,
        done_ns,
        stays: true,
    })
}

/// Opens a stream; `None` means that nothing was sent, because the connection had ended.
async fn send(
    slot: &Slot,
    lane: usize,
    permit: &Permit,
    message: &Message,
) -> Option<ResponseFuture> {
    let link = permit.link();
    let mut sender = link.sender()?;
    poll_fn(|cx| sender.poll_ready(cx)).await.ok()?;
    let head = message.head(&link.jar.borrow());
    slot.sent(lane, permit.nth > 0);
    let (answer, mut stream) = sender.send_request(head, message.body.is_none()).ok()?;
    if let Some(body) = &message.body {
        // If the stream is gone already, the answer says why.
        let _ = stream.send_data(body.clone(), true);
    }
    Some(answer)
}

struct Reading {
    /// Bytes of the body by Content-Length, where they must come.
    announced: Option<u64>,
    bytes: u64,
    hash: Option<Sha256>,
}

impl Reading {
    async fn read(&mut self, mut body: RecvStream) -> Result<(), h2::Error> {
        while let Some(data) = body.data().await {
            let data = match data {
                Ok(data) => data,
                // The answer is complete, and the rest of the request not wanted
                // (RFC 9113 section 8.1).
                Err(error) if is_no_error(&error) && !self.is_lacking() => return Ok(()),
                Err(error) => return Err(error),
            };
            self.bytes += data.len() as u64;
            if let Some(hash) = &mut self.hash {
                hash.update(&data);
            }
            // Fails only for more than was received.
            let _ = body.flow_control().release_capacity(data.len());
        }
        Ok(())
    }

    fn is_lacking(&self) -> bool {
        self.announced.is_some_and(|announced| self.bytes < announced)
    }
}

fn is_no_error(error: &h2::Error) -> bool {
    error.is_reset() && error.is_remote() && error.reason() == Some(Reason::NO_ERROR)
}

fn trouble(slot: &Slot, error: &h2::Error, begun: bool, lacking: bool) -> Outcome {
    let trouble = Trouble::of(error, begun, lacking);
    let why = trouble.explain(error);
    let mut recorder = slot.recorder.borrow_mut();
    match trouble {
        Trouble::Unprocessed => return Outcome::Unprocessed(why),
        Trouble::Refused if slot.counts() => recorder.layers().refused_streams += 1,
        Trouble::Reset if slot.counts() => recorder.layers().reset_streams += 1,
        Trouble::Failed(_) | Trouble::Refused | Trouble::Reset => {}
    }
    Outcome::Failed(trouble.failure(), why)
}

fn announced(slot: &Slot, ask: Ask, headers: &HeaderMap) -> Option<u64> {
    if slot.plan.requests[ask.request].is_head {
        return None;
    }
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// Bytes of names and values; how many they were on the wire the library doesn't tell.
fn decoded_bytes(headers: &HeaderMap) -> u64 {
    headers.iter().map(|(name, value)| (name.as_str().len() + value.len()) as u64).sum()
}

fn keep_cookies(link: &Link, headers: &HeaderMap) {
    let mut jar = link.jar.borrow_mut();
    for value in headers.get_all(SET_COOKIE) {
        jar.keep(&[b"set-cookie:", value.as_bytes()].concat());
    }
}
