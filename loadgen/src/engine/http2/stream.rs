//! A request on its way over HTTP/2, and its answer.

use std::pin::Pin;
use std::task::{Context, Poll};

use h2::client::ResponseFuture;
use h2::{Error, Reason, RecvStream};
use http::HeaderMap;
use http::header::CONTENT_LENGTH;
use sha2::{Digest, Sha256};

use crate::engine::flight::{Answer, Flight};
use crate::grpc::Rpc;
use crate::http2::trouble::Trouble;
use crate::record::Failure;

/// What became of a request; texts are for people.
#[derive(Debug)]
pub enum Outcome {
    Answered(Answer),
    Trouble(Trouble, String),
}

pub struct Stream {
    pub flight: Flight,
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
    pub fn new(
        flight: Flight,
        is_head: bool,
        hash: Option<Box<Sha256>>,
        answer: ResponseFuture,
    ) -> Stream {
        Stream { flight, is_head, hash, phase: Phase::Waiting(answer) }
    }

    /// The answer has begun.
    pub fn is_reading(&self) -> bool {
        matches!(self.phase, Phase::Reading(_))
    }

    /// Reads what has come of the answer.
    pub fn poll(&mut self, cx: &mut Context<'_>, now_ns: u64) -> Poll<Outcome> {
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
                fault: reading
                    .rpc
                    .as_ref()
                    .and_then(Rpc::failure)
                    .map(|why| (Failure::Status, why)),
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
