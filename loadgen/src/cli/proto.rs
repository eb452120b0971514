//! `loadgen proto`: a `.proto` file compiled, and calls checked, before there is a server.

use std::io;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde::Deserialize;
use serde_json::{Value, json};

use super::exit::{OK, Stop, print};
use crate::given;
use crate::grpc::proto::{self, Descriptors, Sources};

/// Read one JSON object from standard input, {"file": NAME, "sources": {NAME: TEXT}} or
/// {"descriptors": …, "calls": [{"path": …, "json": …}]}, and answer with the descriptors as base64, {"descriptors": …}, or with what is wrong,
/// {"error": …, "call": …}.
#[derive(Debug, clap::Args)]
pub struct Args {}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    file: Option<String>,
    #[serde(default)]
    sources: Sources,
    descriptors: Option<String>,
    #[serde(default)]
    calls: Vec<AskedCall>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct AskedCall {
    path: String,
    json: Option<Value>,
}

pub fn main() -> Result<u8, Stop> {
    let text = given::text_of(io::stdin().lock());
    let text = text.map_err(|error| format!("standard input: {error}"))?;
    let asked = serde_json::from_str(&text).map_err(|error| format!("standard input: {error}"))?;
    print(format!("{}\n", answer(asked)))?;
    Ok(OK)
}

fn answer(asked: Asked) -> Value {
    match compiled(asked.file, asked.sources, asked.descriptors) {
        Err(why) => json!({"error": why}),
        Ok(set) => match first_fault(&set, &asked.calls) {
            Some((call, why)) => json!({"error": why, "call": call}),
            None => json!({"descriptors": BASE64_STANDARD.encode(set)}),
        },
    }
}

fn compiled(
    file: Option<String>,
    sources: Sources,
    descriptors: Option<String>,
) -> Result<Vec<u8>, String> {
    match (file, descriptors) {
        (Some(name), None) => proto::compile(&name, sources),
        (None, Some(text)) => BASE64_STANDARD.decode(text).map_err(|error| error.to_string()),
        _ => Err("give file or descriptors".into()),
    }
}

/// The first call that isn't one, with its number.
fn first_fault(set: &[u8], calls: &[AskedCall]) -> Option<(Option<usize>, String)> {
    let descriptors = match Descriptors::decode(set) {
        Ok(descriptors) => descriptors,
        Err(why) => return Some((None, why)),
    };
    let check = |call: &AskedCall| {
        let method = descriptors.method(&call.path)?;
        call.json.iter().try_for_each(|json| proto::messages(&method, json).map(drop))
    };
    let numbered = calls.iter().enumerate();
    numbered
        .map(|(number, call)| (number, check(call)))
        .find_map(|(number, checked)| checked.err().map(|why| (Some(number), why)))
}
