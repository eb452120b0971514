//! From one line of text to an order, or to a message that names the field.

use serde_json::Value;
use thiserror::Error;

use super::validate::{of_other_version, validate};
use super::{Order, SCHEMA};

/// What is wrong with an order, with its id as far as it is known.
#[derive(Debug, Error)]
#[error("{message}")]
pub struct OrderError {
    pub id: Option<String>,
    pub message: String,
}

/// Reads and checks an order.
pub fn parse(line: &str) -> Result<Order, OrderError> {
    let deserializer = &mut serde_json::Deserializer::from_str(line);
    let order: Order = serde_path_to_error::deserialize(deserializer).map_err(|error| {
        let field = error.path().to_string();
        let cause = error.into_inner().to_string();
        let cause = without_place(&cause);
        let message = match (other_version_of(line), field.as_str()) {
            (Some(schema), _) => of_other_version(schema),
            (None, ".") => format!("the order is wrong: {cause}"),
            (None, _) => format!("{field}: {cause}"),
        };
        OrderError { id: id_of(line), message }
    })?;
    match validate(&order) {
        Ok(()) => Ok(order),
        Err(message) => Err(OrderError { id: Some(order.id), message }),
    }
}

/// The version of an order's contract, where it is another one.
fn other_version_of(line: &str) -> Option<u64> {
    let value: Value = serde_json::from_str(line).ok()?;
    value.get("schema")?.as_u64().filter(|schema| *schema != u64::from(SCHEMA))
}

fn id_of(line: &str) -> Option<String> {
    let value: Value = serde_json::from_str(line).ok()?;
    Some(value.get("id")?.as_str()?.to_owned())
}

/// An order is one line that a program wrote, so line and column say nothing.
fn without_place(cause: &str) -> &str {
    cause.split_once(" at line ").map_or(cause, |(cause, _)| cause)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::order::KeepAlive;

    const GOOD: &str = r#"{"id":"a","requests":[{"url":"http://127.0.0.1:1/"}],
        "load":{"loop":"closed","connections":4},"duration_s":0.5}"#;

    #[test]
    fn fills_in_what_is_left_out() {
        let order = parse(GOOD).expect("good");
        assert_eq!(order.load.keepalive, KeepAlive::Always);
        assert_eq!(order.requests[0].method, "GET");
        assert_eq!(order.load.timeout_s, 5.0);
    }

    #[test]
    fn names_the_field_that_is_wrong() {
        for (from, to, wanted) in [
            ("\"connections\":4", "\"connections\":\"4\"", "load.connections: invalid type"),
            ("\"connections\":4", "\"connections\":0", "load.connections: 0"),
            ("\"connections\":4", "\"connections\":4,\"keepalive\":0", "load.keepalive"),
            ("\"connections\":4", "\"connections\":4,\"nope\":1", "unknown field `nope`"),
            ("\"duration_s\":0.5", "\"seed\":1", "duration_s"),
            ("\"connections\":4", "\"connections\":5000000000", "expected u32"),
        ] {
            let error = parse(&GOOD.replace(from, to)).expect_err(to);
            assert!(error.message.contains(wanted), "{to}: {}", error.message);
            assert!(!error.message.contains("column"), "{}", error.message);
            assert_eq!(error.id.as_deref(), Some("a"));
        }
        for more in ["", "\"lead_in_s\":1,"] {
            let other = format!("{{\"schema\":1,{more}\"id\"");
            let error = parse(&GOOD.replace("{\"id\"", &other)).expect_err("of another version");
            assert!(error.message.contains("of version 1"), "{}", error.message);
        }
        assert!(parse("nonsense").expect_err("not JSON").id.is_none());
    }
}
