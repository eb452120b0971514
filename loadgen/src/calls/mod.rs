//! Calls of gRPC among the requests of an order: what is sent for each, and what their answers say.

mod reflection;
mod request;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use prost_reflect::MethodDescriptor;
use serde_json::{Value, json};

use crate::grpc::messages;
use crate::grpc::proto::{self, Descriptors};
use crate::order::{Order, Request};
use crate::target::Target;
use reflection::Reflection;

/// Of an answer that is shown as JSON, unpacked: more clients of gRPC don't take unless told to
/// (grpc.io, `GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH`).
const MOST_BYTES: usize = 4 << 20;

/// The method that each of an order's requests calls, as far as it is known.
#[derive(Debug, Default)]
pub struct Calls(Vec<Option<MethodDescriptor>>);

impl Calls {
    /// Gives each call its method, header fields and body. What messages are is in the order, or the
    /// server is asked for it where that is needed to send or, with `shows`, to show them. Errors
    /// name the field.
    pub fn prepare(order: &mut Order, shows: bool) -> Result<Calls, String> {
        let mut calls = Calls(vec![None; order.requests.len()]);
        if !order.requests.iter().any(Request::is_call) {
            return Ok(calls);
        }
        let given = given(order)?;
        let mut reflection = Reflection::default();
        for index in 0..order.requests.len() {
            if !order.requests[index].is_call() {
                continue;
            }
            let named = |why: String| format!("requests[{index}].{why}");
            let method = match &given {
                Some(descriptors) => Some(given_method(descriptors, &order.requests[index])),
                None => reflected_method(&mut reflection, order, index, shows),
            };
            let method = method.transpose().map_err(named)?;
            let timeout_s = order.load.timeout_s;
            request::complete(&mut order.requests[index], timeout_s, method.as_ref())
                .map_err(named)?;
            calls.0[index] = method;
        }
        Ok(calls)
    }

    /// The answer to the request of a number as JSON, where its kind is known.
    pub fn json(&self, number: usize, body: &[u8]) -> Option<Result<Value, String>> {
        let method = self.0.get(number)?.as_ref()?;
        Some(messages::read(body, MOST_BYTES).and_then(|messages| proto::json(method, &messages)))
    }
}

fn given(order: &Order) -> Result<Option<Descriptors>, String> {
    let Some(text) = &order.descriptors else { return Ok(None) };
    let bytes = BASE64_STANDARD.decode(text);
    let bytes = bytes.map_err(|error| format!("descriptors: are no base64: {error}"))?;
    Descriptors::decode(&bytes).map(Some).map_err(|why| format!("descriptors: {why}"))
}

fn given_method(given: &Descriptors, request: &Request) -> Result<MethodDescriptor, String> {
    let target = Target::parse(&request.url);
    let method = target.and_then(|target| given.method(&target.path));
    method.map_err(|why| format!("url: {why}"))
}

/// None where nothing needs to be known of it: bytes are sent as they are, and the empty message is
/// that of any kind.
fn reflected_method(
    reflection: &mut Reflection,
    order: &Order,
    index: usize,
    shows: bool,
) -> Option<Result<MethodDescriptor, String>> {
    match order.requests[index].json.as_ref()? {
        empty if *empty == json!({}) && !shows => None,
        empty if *empty == json!({}) => reflection.method(order, index).ok().map(Ok),
        _ => Some(reflection.method(order, index)),
    }
}
