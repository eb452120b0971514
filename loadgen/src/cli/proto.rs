//! `loadgen proto`: a `.proto` file compiled, and calls checked, before there is a server.

use std::io;
use std::path::PathBuf;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde::Deserialize;
use serde_json::{Value, json};

use super::exit::{OK, Stop, print};
use crate::given;
use crate::grpc::proto::{self, Descriptors};

/// Read one JSON object from standard input, {"file": …} or {"descriptors": …, "calls": [{"path": …,
/// "json": …}]}, and answer with the descriptors as base64, {"descriptors": …}, or with what is wrong,
/// {"error": …, "call": …}.
#[derive(Debug, clap::Args)]
pub struct Args {}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    file: Option<PathBuf>,
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
    print(format!("{}\n", answer(&asked)))?;
    Ok(OK)
}

fn answer(asked: &Asked) -> Value {
    match compiled(asked) {
        Err(why) => json!({"error": why}),
        Ok(set) => match first_fault(&set, &asked.calls) {
            Some((call, why)) => json!({"error": why, "call": call}),
            None => json!({"descriptors": BASE64_STANDARD.encode(set)}),
        },
    }
}

fn compiled(asked: &Asked) -> Result<Vec<u8>, String> {
    match (&asked.file, &asked.descriptors) {
        (Some(file), None) => proto::compile(file),
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
