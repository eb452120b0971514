//! The answer to a call while it arrives: whether what came is what gRPC has.

use super::messages::Messages;
use super::reply::Reply;
use super::status::{OK, Rpc};
use crate::record::Failure;

#[derive(Debug)]
pub struct CallAnswer {
    /// From its head or its trailers.
    pub rpc: Rpc,
    messages: Messages,
    count: u64,
}

impl CallAnswer {
    pub fn new(rpc: Rpc) -> CallAnswer {
        CallAnswer { rpc, messages: Messages::default(), count: 0 }
    }

    pub fn take_body(&mut self, body: &[u8]) {
        self.count += u64::from(self.messages.feed(body));
    }

    /// What is wrong with the messages of one that has ended well, by its status.
    pub fn fault(&self, reply: Reply) -> Option<(Failure, String)> {
        if self.rpc.code() != Some(OK) {
            return None;
        }
        let malformed = |why: &str| Some((Failure::Malformed, why.to_owned()));
        if self.messages.are_odd() {
            return malformed("a message begins with a byte that is neither 0 nor 1");
        }
        if self.messages.are_compressed() && !self.rpc.is_encoded {
            return malformed("a message is compressed, and no grpc-encoding says how");
        }
        if !self.messages.are_whole() {
            return Some((Failure::Truncated, "the answer ends in the middle of a message".into()));
        }
        match reply {
            Reply::One if self.count != 1 => {
                malformed(&format!("{} messages answer a call that has one answer", self.count))
            }
            _ => None,
        }
    }
}

/// What is wrong with an answer that isn't of gRPC at all.
pub fn not_grpc() -> (Failure, String) {
    (Failure::Malformed, "the answer is no gRPC: its content-type isn't application/grpc".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(reply: Reply, encoding: Option<&[u8]>, body: &[u8]) -> Option<Failure> {
        let mut rpc = Rpc::default();
        rpc.take_status(b"0");
        encoding.iter().for_each(|encoding| rpc.take_encoding(encoding));
        let mut answer = CallAnswer::new(rpc);
        body.chunks(3).for_each(|piece| answer.take_body(piece));
        answer.fault(reply).map(|(failure, _)| failure)
    }

    #[test]
    fn messages_are_what_was_announced() {
        let (one, malformed) = (Reply::One, Some(Failure::Malformed));
        assert_eq!(fault(one, None, b"\0\0\0\0\x01x"), None);
        assert_eq!(fault(one, None, b""), malformed);
        assert_eq!(fault(one, None, b"\0\0\0\0\0\0\0\0\0\0"), malformed);
        assert_eq!(fault(Reply::Any, None, b""), None);
        assert_eq!(fault(one, None, b"\0\xff\xff\xff\xffx"), Some(Failure::Truncated));
        assert_eq!(fault(one, None, b"\x01\0\0\0\x01x"), malformed);
        assert_eq!(fault(one, Some(b"identity"), b"\x01\0\0\0\x01x"), malformed);
        assert_eq!(fault(one, Some(b"gzip"), b"\x01\0\0\0\x01x"), None);
        assert_eq!(fault(one, None, b"\x02\0\0\0\0"), malformed);
    }
}
