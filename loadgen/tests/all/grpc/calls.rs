//! What calls send, by messages that an order has as JSON.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use loadgen::calls::Calls;
use loadgen::grpc::proto::compile;
use loadgen::order::Order;
use loadgen::order::parse::parse;
use serde_json::{Value, json};

use crate::http2::server;
use crate::layers::frames::{DATA, HEADERS};
use crate::layers::http2;
use crate::support::{Server, expect, merge, order, run};

const PROTO: &str = r#"
    syntax = "proto3";
    package hello;
    message Request { string name = 1; }
    message Reply { string text = 1; }
    service Greeter {
        rpc Say(Request) returns (Reply);
        rpc Talk(stream Request) returns (stream Reply);
    }
"#;

fn descriptors() -> String {
    let sources = [("hello.proto".to_owned(), PROTO.to_owned())];
    BASE64_STANDARD.encode(compile("hello.proto", sources.into()).expect("compiles"))
}

/// An order that calls a method.
fn calling(address: &str, method: &str, json: Value, more: Value) -> Value {
    let url = format!("grpc://{address}/hello.Greeter/{method}");
    let mut asked = order(&url, 6, http2(1, 2));
    asked["requests"][0]["json"] = json;
    asked["descriptors"] = descriptors().into();
    merge(&mut asked, more);
    asked
}

fn prepared(asked: &Value) -> Result<Order, String> {
    let mut order = parse(&asked.to_string()).map_err(|error| error.message)?;
    Calls::prepare(&mut order, true).map(|_| order)
}

/// Each call is answered by its own messages.
fn echo() -> Server {
    server(&[], |mut frames, _| {
        while let Some(frame) = frames.next() {
            match frame.kind {
                HEADERS => {
                    let head = [(":status", "200"), ("content-type", "application/grpc+proto")];
                    frames.fields(frame.id, &head, false);
                }
                DATA => {
                    frames.data(frame.id, &frame.payload, false);
                    frames.fields(frame.id, &[("grpc-status", "0")], true);
                }
                _ => {}
            }
        }
    })
}

#[test]
fn messages_are_sent_as_the_service_has_them() {
    let server = echo();
    let address = server.address.to_string();
    let result = run(&calling(&address, "Say", json!({"name": "ann"}), json!({})));
    expect(&result, &[("/requests/completed", 6), ("/bytes/body", 6 * (5 + 5))]);
    expect(&result, &[("/grpc_by_status/0", 6)]);
    let list = json!([{"name": "ann"}, {}, {"name": "bob"}]);
    let mut talk = calling(&address, "Talk", list, json!({}));
    talk["requests"][0]["events"] = json!("grpc");
    let result = run(&talk);
    expect(&result, &[("/requests/completed", 6), ("/bytes/body", 6 * (3 * 5 + 2 * 5))]);
    assert_eq!(result["events"]["per_response"], json!(3.0));
    // A call that has one answer doesn't take two.
    let body = json!({"base64": BASE64_STANDARD.encode([0; 10])});
    let mut twice = calling(&address, "Say", Value::Null, json!({}));
    twice["requests"][0]["body"] = body;
    let result = run(&twice);
    expect(&result, &[("/failures/malformed", 6)]);
    let samples = result["failure_samples"].to_string();
    assert!(samples.contains("2 messages answer a call"), "{samples}");
}

#[test]
fn calls_need_little_said_of_them() {
    let order = prepared(&calling("127.0.0.1:1", "Say", json!({"name": "ann"}), json!({})));
    let request = &order.expect("good").requests[0];
    assert_eq!(request.method, "POST");
    assert_eq!(request.header("te"), Some("trailers"));
    assert_eq!(request.header("grpc-timeout"), Some("5000000u"));
    assert_eq!(request.body.as_deref(), Some(&b"\0\0\0\0\x05\x0a\x03ann"[..]));
    let load = json!({"load": {"timeout_s": 0.25}});
    let mut asked = calling("127.0.0.1:1", "Say", json!({"name": "ann"}), load);
    asked["requests"][0]["headers"] = json!({"grpc-encoding": "gzip", "x-tenant": "a"});
    let order = prepared(&asked).expect("good");
    assert_eq!(order.requests[0].header("grpc-timeout"), Some("250000u"));
    assert_eq!(order.requests[0].header("x-tenant"), Some("a"));
    assert_eq!(order.requests[0].body.as_ref().map(|body| body[0]), Some(1));
}

#[test]
fn what_is_no_call_is_named() {
    for (method, json, more, why) in [
        ("Say", json!({"nam": "x"}), json!({}), "requests[0].json: unrecognized field name 'nam'"),
        ("Say", json!([{}]), json!({}), "requests[0].json: hello.Greeter.Say takes one message"),
        ("Talk", json!([{}, {"name": 1}]), json!({}), "message 1: name: "),
        ("Sing", json!({}), json!({}), "requests[0].url: hello.Greeter has no method Sing"),
        ("Say", json!({}), json!({"descriptors": "#"}), "descriptors: are no base64"),
        ("Say", json!({}), json!({"descriptors": "/w=="}), "descriptors: are no FileDescriptorSet"),
        ("Say", json!({}), json!({"load": {"protocol": "http1", "streams": null}}), "\"http2\""),
        (
            "Say",
            json!({"name": "x"}),
            json!({"descriptors": null}),
            "requests[0].url: the server doesn't say what hello.Greeter is",
        ),
    ] {
        let refused = prepared(&calling("127.0.0.1:1", method, json, more)).expect_err(why);
        assert!(refused.contains(why), "{refused}");
    }
    for (key, value, why) in [
        ("body", json!("x"), "body and json"),
        ("method", json!("PUT"), "no method of HTTP but POST"),
        ("url", json!("http://127.0.0.1:1/"), "json is the message of a call"),
        ("headers", json!({"grpc-encoding": "br"}), "gzip only"),
    ] {
        let mut asked = calling("127.0.0.1:1", "Say", json!({}), json!({}));
        asked["requests"][0][key] = value;
        let refused = prepared(&asked).expect_err(why);
        assert!(refused.contains(why), "{refused}");
    }
}

/// The empty message is that of any method, whose server need not say anything of itself.
#[test]
fn nothing_needs_to_be_known_of_empty_messages() {
    let server = echo();
    let address = server.address.to_string();
    let result = run(&calling(&address, "Any", json!({}), json!({"descriptors": null})));
    expect(&result, &[("/requests/completed", 6), ("/bytes/body", 6 * 5)]);
}
