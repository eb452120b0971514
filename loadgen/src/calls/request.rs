//! What a call sends over HTTP/2 (grpc.io, "gRPC over HTTP2", Requests).

use prost_reflect::MethodDescriptor;

use crate::grpc::reply::Reply;
use crate::grpc::{messages, proto};
use crate::order::Request;

const GZIP: &str = "gzip";
/// A time-out has so many digits at most.
const MOST_TIMEOUT: f64 = 99_999_999.0;

/// Gives a call its method, the header fields that it lacks, and the body that its JSON stands for.
/// Errors name the field.
pub fn complete(
    request: &mut Request,
    timeout_s: f64,
    method: Option<&MethodDescriptor>,
) -> Result<(), String> {
    request.method = "POST".into();
    request.reply = Some(match method {
        Some(method) if !method.is_server_streaming() => Reply::One,
        _ => Reply::Any,
    });
    for (name, value) in [
        ("content-type", "application/grpc".to_owned()),
        ("te", "trailers".into()),
        ("grpc-timeout", timeout(timeout_s)),
    ] {
        if request.header(name).is_none() {
            request.headers.push((name.into(), value));
        }
    }
    let Some(json) = &request.json else { return Ok(()) };
    let all = method.map_or_else(|| Ok(vec![Vec::new()]), |method| proto::messages(method, json));
    let all = all.map_err(|why| format!("json: {why}"))?;
    let encoding = request.header("grpc-encoding").filter(|encoding| *encoding != "identity");
    if encoding.is_some_and(|encoding| encoding != GZIP) {
        return Err("headers: grpc-encoding: messages can be compressed by gzip only".into());
    }
    let mut body = Vec::new();
    all.iter().for_each(|message| messages::put(message, encoding.is_some(), &mut body));
    request.body = Some(body);
    Ok(())
}

/// In the largest unit that is exact enough.
fn timeout(seconds: f64) -> String {
    [(1e6, 'u'), (1e3, 'm'), (1.0, 'S')]
        .into_iter()
        .map(|(per_s, unit)| ((seconds * per_s).ceil(), unit))
        .find(|(count, _)| *count <= MOST_TIMEOUT)
        .map_or_else(|| format!("{MOST_TIMEOUT}S"), |(count, unit)| format!("{count}{unit}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn call(headers: &[(&str, &str)]) -> Request {
        let headers = headers.iter().map(|(name, value)| ((*name).into(), (*value).into()));
        let json = Some(json!({}));
        let url = "grpc://127.0.0.1:1/a.B/C".into();
        Request { headers: headers.collect(), json, ..Request::get(url) }
    }

    #[test]
    fn calls_say_what_they_are() {
        let mut usual = call(&[("x-tenant", "a")]);
        complete(&mut usual, 5.0, None).expect("complete");
        assert_eq!(usual.method, "POST");
        let names: Vec<_> = usual.headers.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["x-tenant", "content-type", "te", "grpc-timeout"]);
        assert_eq!(usual.header("grpc-timeout"), Some("5000000u"));
        assert_eq!((usual.body, usual.reply), (Some(vec![0; 5]), Some(Reply::Any)));
        let mut own = call(&[("GRPC-Timeout", ""), ("grpc-encoding", "gzip")]);
        complete(&mut own, 5.0, None).expect("complete");
        assert_eq!(own.header("grpc-timeout"), Some(""));
        assert!(own.body.is_some_and(|body| body[0] == 1));
        let refused = complete(&mut call(&[("grpc-encoding", "snappy")]), 5.0, None);
        assert!(refused.expect_err("unknown").contains("gzip only"));
    }

    #[test]
    fn timeouts_have_eight_digits_at_most() {
        for (seconds, text) in [
            (0.0001, "100u"),
            (60.0, "60000000u"),
            (600.0, "600000m"),
            (2e5, "200000S"),
            (1e12, "99999999S"),
        ] {
            assert_eq!(timeout(seconds), text);
        }
    }
}
