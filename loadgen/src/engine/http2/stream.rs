//! A request on its way over HTTP/2, and its answer.

use std::sync::Arc;

use sha2::{Digest, Sha256};

use crate::engine::flight::{Answer, Flight};
use crate::events::EventStream;
use crate::grpc::answer::{CallAnswer, not_grpc};
use crate::grpc::reply::Reply;
use crate::http1::head::SWITCHING;
use crate::http2::code::Fault;
use crate::http2::fields::Fields;
use crate::http2::trouble::{Explained, Trouble};
use crate::http2::window::{ReceiveWindow, SendWindow};
use crate::record::Failure;

/// What became of a request; texts are for people.
#[derive(Debug)]
pub enum Outcome {
    Answered(Answer),
    Trouble(Trouble, String),
}

#[derive(Debug)]
pub struct Stream {
    pub id: u32,
    pub flight: Flight,
    is_head: bool,
    /// What is made of the answer's body.
    pub reading: Reading,
    /// What is left of the request's body.
    pub rest: Option<Rest>,
    pub window: SendWindow,
    pub received: ReceiveWindow,
    head: Option<Head>,
    body_bytes: u64,
    end: Option<Result<(), Explained>>,
}

/// What is made of an answer's body.
#[derive(Debug, Default)]
pub struct Reading {
    pub hash: Option<Box<Sha256>>,
    /// Where it is a stream of them.
    pub events: Option<Box<EventStream>>,
    /// Where a call of gRPC is answered.
    pub reply: Option<Reply>,
}

/// A part of a request's body that is to be sent yet.
#[derive(Debug)]
pub struct Rest {
    pub body: Arc<[u8]>,
    pub sent: usize,
}

/// The head of an answer.
#[derive(Debug)]
struct Head {
    status: u16,
    bytes: u64,
    /// 0 until it was looked at.
    first_byte_ns: u64,
    /// How long the body is by Content-Length.
    announced: Option<u64>,
    /// Where the answer is of gRPC.
    call: Option<CallAnswer>,
}

impl Stream {
    pub fn new(
        id: u32,
        flight: Flight,
        is_head: bool,
        reading: Reading,
        window: SendWindow,
        received: ReceiveWindow,
    ) -> Stream {
        let (rest, head, end) = (None, None, None);
        Stream { id, flight, is_head, reading, rest, window, received, head, body_bytes: 0, end }
    }

    /// One of HTTP/3: its number and its windows are QUIC's business.
    pub fn over_quic(flight: Flight, is_head: bool, reading: Reading) -> Stream {
        Stream::new(0, flight, is_head, reading, SendWindow::new(0), ReceiveWindow::new(0))
    }

    /// The answer has begun, and not ended.
    pub fn is_reading(&self) -> bool {
        self.head.is_some() && !self.is_over()
    }

    /// Bytes of the answer that have come.
    pub fn bytes(&self) -> u64 {
        self.head.as_ref().map_or(0, |head| head.bytes) + self.body_bytes
    }

    /// Some of the body is there, and how much is to come nobody knows.
    pub fn is_endless(&self) -> bool {
        self.body_bytes > 0 && self.head.as_ref().is_some_and(|head| head.announced.is_none())
    }

    /// It is known what became of the request.
    pub fn is_over(&self) -> bool {
        self.end.is_some()
    }

    /// Takes in a head, which may be one of several, or trailers.
    pub fn take_fields(&mut self, fields: Fields, ends: bool) -> Result<(), Fault> {
        if let Some(fault) = fields.fault {
            return Err(fault);
        }
        let Some(head) = &mut self.head else { return self.take_head(fields, ends) };
        if fields.status > 0 || !ends {
            return Err(Fault::protocol("trailers that are none"));
        }
        if let Some(call) = &mut head.call {
            call.rpc = std::mem::take(&mut call.rpc).or(fields.rpc);
        }
        Ok(())
    }

    fn take_head(&mut self, fields: Fields, ends: bool) -> Result<(), Fault> {
        let Fields { status, content_length, .. } = fields;
        match status {
            0 => return Err(Fault::protocol("an answer has no :status")),
            // RFC 9113 section 8.6.
            SWITCHING => return Err(Fault::protocol("status 101 has no place in HTTP/2 and 3")),
            100..200 if ends => {
                return Err(Fault::protocol("a preliminary answer is the last one"));
            }
            100..200 => return Ok(()),
            _ => {}
        }
        // RFC 9110 section 8.6.
        let is_bare = self.is_head || matches!(status, 204 | 304);
        let announced = if is_bare { Some(0) } else { content_length };
        if ends && announced.is_some_and(|bytes| bytes > 0) {
            return Err(Fault::protocol("an answer has a Content-Length and no body"));
        }
        let call = fields.is_grpc.then(|| CallAnswer::new(fields.rpc));
        self.head = Some(Head { status, bytes: fields.bytes, first_byte_ns: 0, announced, call });
        Ok(())
    }

    pub fn take_body(&mut self, body: &[u8]) -> Result<(), Fault> {
        let Some(head) = &mut self.head else {
            return Err(Fault::protocol("a body comes before its head"));
        };
        self.body_bytes += body.len() as u64;
        if head.announced.is_some_and(|announced| self.body_bytes > announced) {
            return Err(Fault::protocol(
                "a body is longer than its Content-Length says, or may be",
            ));
        }
        if let (Some(call), Some(_)) = (&mut head.call, self.reading.reply) {
            call.take_body(body);
        }
        if let Some(hash) = &mut self.reading.hash {
            hash.update(body);
        }
        if let Some(events) = &mut self.reading.events {
            events.read(body);
        }
        Ok(())
    }

    /// Events ended that haven't been timed.
    pub fn has_fresh_events(&self) -> bool {
        self.reading.events.as_ref().is_some_and(|events| events.fresh > 0)
    }

    /// Nothing more comes.
    pub fn finish(&mut self) {
        let announced = self.head.as_ref().and_then(|head| head.announced);
        let is_whole = announced.is_none_or(|announced| self.body_bytes >= announced);
        self.end = Some(match is_whole {
            true => self.fault_of_call().map_or(Ok(()), Err),
            false => Err(Trouble::truncated()),
        });
    }

    /// What a call was answered, where that isn't gRPC.
    fn fault_of_call(&self) -> Option<Explained> {
        let (reply, head) = (self.reading.reply?, self.head.as_ref()?);
        let (failure, why) = match &head.call {
            Some(call) => call.fault(reply)?,
            None => (200..300).contains(&head.status).then(not_grpc)?,
        };
        Some((Trouble::Failed(failure), why))
    }

    /// All came that was announced, though nobody said that it was all.
    pub fn is_complete(&self) -> bool {
        self.head.as_ref().is_some_and(|head| head.announced == Some(self.body_bytes))
    }

    pub fn fail(&mut self, why: Explained) {
        self.end = Some(Err(why));
    }

    /// The answer was looked at then.
    pub fn see(&mut self, now_ns: u64) {
        if let Some(head) = self.head.as_mut().filter(|head| head.first_byte_ns == 0) {
            head.first_byte_ns = now_ns;
        }
    }

    /// What became of a request that is over since `now_ns`.
    pub fn into_outcome(self, now_ns: u64) -> (Flight, Outcome) {
        let outcome = match (self.end, self.head) {
            (Some(Err((trouble, why))), _) => Outcome::Trouble(trouble, why),
            (_, Some(Head { status, bytes, first_byte_ns, call, .. })) => {
                let fault = call.as_ref().and_then(|call| call.rpc.failure());
                Outcome::Answered(Answer {
                    status,
                    head_bytes: bytes,
                    body_bytes: self.body_bytes,
                    hash: self.reading.hash,
                    fault: fault.map(|why| (Failure::Status, why)),
                    grpc_status: call.and_then(|call| call.rpc.code()),
                    events: self.reading.events,
                    first_byte_ns,
                    done_ns: now_ns,
                })
            }
            (_, None) => {
                let fault = Fault::protocol("an answer ends without a head");
                let (trouble, why) = Trouble::malformed(fault);
                Outcome::Trouble(trouble, why)
            }
        };
        (self.flight, outcome)
    }
}
