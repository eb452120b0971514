//! Whether an answer is the one that was expected.

use sha2::{Digest, Sha256};

use crate::http1::head::SWITCHING;
use crate::order::Expect;
use crate::record::Failure;

/// After the first answer to a request, one in this many has its body read and checksummed.
pub const CHECKSUM_EVERY: u32 = 256;

impl Expect {
    /// What is wrong with an answer whose framing was sound; `hash` is given for those whose body
    /// was read in full.
    pub fn judge(&self, status: u16, body_bytes: u64, hash: Option<Sha256>) -> Option<Failure> {
        if !self.has_right_status(status) {
            return Some(Failure::Status);
        }
        if self.body_bytes.is_some_and(|wanted| wanted != body_bytes) {
            return Some(Failure::Body);
        }
        let (Some(wanted), Some(hash)) = (&self.body_sha256, hash) else {
            return None;
        };
        (hash.finalize().as_slice() != wanted.0).then_some(Failure::Body)
    }

    pub fn has_right_status(&self, status: u16) -> bool {
        match &self.status {
            // 101 is malformed unless it was asked for.
            None => status == SWITCHING || (200..300).contains(&status),
            Some(right) => right.contains(&status),
        }
    }

    /// The statuses that are right, in words.
    pub fn status_text(&self) -> String {
        match &self.status {
            None => "2xx".into(),
            Some(right) => right.iter().map(u16::to_string).collect::<Vec<_>>().join(" or "),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::order::Sha256Hex;

    const EMPTY: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    fn expectation(json: &str) -> Expect {
        serde_json::from_str(json).expect("an expect object")
    }

    #[test]
    fn any_2xx_unless_the_order_says_otherwise() {
        let any = expectation("{}");
        assert_eq!(any.judge(204, 0, None), None);
        assert_eq!(any.judge(304, 0, None), Some(Failure::Status));
        let exact = expectation(r#"{"status":[304,404]}"#);
        assert_eq!(exact.judge(404, 0, None), None);
        assert_eq!(exact.judge(200, 0, None), Some(Failure::Status));
    }

    #[test]
    fn length_always_and_checksum_where_the_body_was_read() {
        let all = expectation(&format!(r#"{{"body_bytes":0,"body_sha256":"{EMPTY}"}}"#));
        assert_eq!(all.judge(200, 1, None), Some(Failure::Body));
        assert_eq!(all.judge(200, 0, None), None);
        assert_eq!(all.judge(200, 0, Some(Sha256::new())), None);
        let other = Sha256::new_with_prefix(b"x");
        assert_eq!(all.judge(200, 0, Some(other)), Some(Failure::Body));
    }

    #[test]
    fn a_checksum_has_64_digits() {
        assert!(EMPTY.parse::<Sha256Hex>().is_ok());
        assert!("e3b0".parse::<Sha256Hex>().is_err());
        assert!("é".repeat(32).parse::<Sha256Hex>().is_err());
    }
}
