//! Servers say themselves what their services are: gRPC's server reflection, v1 or v1alpha.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};

use prost::Message;
use prost_reflect::MethodDescriptor;
use prost_reflect::prost_types::{FileDescriptorProto, FileDescriptorSet};

use super::request;
use crate::ask::{Asker, Room, Seen};
use crate::engine::Plan;
use crate::grpc::proto::{Descriptors, parts};
use crate::grpc::{messages, status};
use crate::order::{Load, Loop, Order, Protocol, Request, Trace};
use crate::shown::beginning;
use crate::target::Target;

const VERSIONS: [&str; 2] = ["v1", "v1alpha"];
/// What is longer describes no service: of an answer, and of all files.
const MOST_BYTES: usize = 4 << 20;
const ROOM: Room = Room { kept_bytes: MOST_BYTES, most_bytes: MOST_BYTES as u64, hashes: false };
/// Imports of imports of imports lie this deep at most.
const MOST_QUESTIONS: usize = 50;

/// What servers have said, by address and service.
#[derive(Debug, Default)]
pub struct Reflection(HashMap<(String, String), Descriptors>);

impl Reflection {
    /// The method that one of an order's requests calls.
    pub fn method(&mut self, order: &Order, index: usize) -> Result<MethodDescriptor, String> {
        let in_url = |why: String| format!("url: {why}");
        let request = &order.requests[index];
        let target = Target::parse(&request.url).map_err(in_url)?;
        let (service, _) = parts(&target.path).map_err(in_url)?;
        let known = match self.0.entry((target.origin.clone(), service.to_owned())) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => {
                let said = ask(order, request, &target, service).map_err(|why| {
                    format!(
                        "url: the server doesn't say what {service} is ({why}); give its .proto \
                         file (--proto, descriptors)"
                    )
                })?;
                new.insert(said)
            }
        };
        known.method(&target.path).map_err(in_url)
    }
}

/// A `ServerReflectionRequest`: one of these.
#[derive(Clone, PartialEq, Message)]
struct Question {
    #[prost(string, tag = "3")]
    file: String,
    #[prost(string, tag = "4")]
    symbol: String,
}

/// A `ServerReflectionResponse`.
#[derive(Clone, PartialEq, Message)]
struct Answer {
    #[prost(message, optional, tag = "4")]
    files: Option<Files>,
    #[prost(message, optional, tag = "7")]
    error: Option<Refusal>,
}

/// Each is a `FileDescriptorProto`.
#[derive(Clone, PartialEq, Message)]
struct Files {
    #[prost(bytes = "vec", repeated, tag = "1")]
    files: Vec<Vec<u8>>,
}

#[derive(Clone, PartialEq, Message)]
struct Refusal {
    #[prost(int32, tag = "1")]
    code: i32,
    #[prost(string, tag = "2")]
    message: String,
}

fn ask(
    order: &Order,
    like: &Request,
    target: &Target,
    service: &str,
) -> Result<Descriptors, String> {
    let mut why = String::new();
    for version in VERSIONS {
        let url = format!(
            "{}/grpc.reflection.{version}.ServerReflection/ServerReflectionInfo",
            target.origin
        );
        let answers = |questions: Vec<Question>| answers(order, like, &url, &questions);
        match files_of(service, answers) {
            Ok(files) => return Descriptors::decode(&files.encode_to_vec()),
            Err(Failed { is_unknown: true, why: again }) => why = again,
            Err(failed) => return Err(failed.why),
        }
    }
    Err(why)
}

struct Failed {
    /// The server doesn't know this version.
    is_unknown: bool,
    why: String,
}

impl From<String> for Failed {
    fn from(why: String) -> Failed {
        Failed { is_unknown: false, why }
    }
}

/// The file that has a service, and those that it needs.
fn files_of(
    service: &str,
    answers: impl Fn(Vec<Question>) -> Result<Vec<Answer>, Failed>,
) -> Result<FileDescriptorSet, Failed> {
    let mut files: HashMap<String, FileDescriptorProto> = HashMap::new();
    let mut left = MOST_BYTES;
    let mut questions = vec![Question { symbol: service.into(), ..Question::default() }];
    for _ in 0..MOST_QUESTIONS {
        for answer in answers(questions)? {
            if let Some(Refusal { code, message }) = answer.error {
                return Err(format!("{code}: {}", beginning(&message)).into());
            }
            for bytes in answer.files.unwrap_or_default().files {
                let too_long = || format!("it says more than {MOST_BYTES} bytes");
                left = left.checked_sub(bytes.len()).ok_or_else(too_long)?;
                let file = FileDescriptorProto::decode(&bytes[..]);
                let file = file.map_err(|error| format!("it describes no file: {error}"))?;
                files.insert(file.name().to_owned(), file);
            }
        }
        let needed: BTreeSet<&String> = files.values().flat_map(|file| &file.dependency).collect();
        let lacking = needed.into_iter().filter(|name| !files.contains_key(*name));
        questions =
            lacking.map(|name| Question { file: name.clone(), ..Question::default() }).collect();
        if questions.is_empty() {
            return Ok(FileDescriptorSet { file: files.into_values().collect() });
        }
    }
    Err("its files import others without end".to_owned().into())
}

/// Asks as the request would, over a connection of its own.
fn answers(
    order: &Order,
    like: &Request,
    url: &str,
    questions: &[Question],
) -> Result<Vec<Answer>, Failed> {
    let mut body = Vec::new();
    questions.iter().for_each(|question| {
        messages::put(&question.encode_to_vec(), false, &mut body);
    });
    let headers = like.headers.clone();
    let mut request = Request { headers, body: Some(body), ..Request::get(url.into()) };
    request::complete(&mut request, order.load.timeout_s, None)?;
    let plan = Plan::new(order_of(request, order))?;
    let Seen { trouble, fault, grpc_status, response, .. } = Asker::new(&plan, ROOM).ask(0);
    if let Some(why) = trouble.map(|trouble| trouble.why).or(fault) {
        let is_unknown = grpc_status == Some(status::UNIMPLEMENTED);
        return Err(Failed { is_unknown, why });
    }
    let decode = |message: &Vec<u8>| {
        Answer::decode(&message[..]).map_err(|error| format!("it says what is no answer: {error}"))
    };
    let answers: Result<Vec<Answer>, String> =
        messages::read(&response.body, MOST_BYTES)?.iter().map(decode).collect();
    Ok(answers?)
}

/// It asks once, where the load goes.
fn order_of(request: Request, like: &Order) -> Order {
    let Load { tls, connect_to, timeout_s, .. } = like.load.clone();
    let load = Load {
        kind: Loop::Closed,
        connections: 1,
        keepalive: Default::default(),
        timeout_s,
        send_delay_budget_s: 0.0,
        kernel_times: false,
        connection_ramp_s: 0.0,
        think: None,
        arrivals: None,
        source_addresses: Vec::new(),
        cookies: false,
        idle_connections: 0,
        slow_readers: None,
        protocol: Protocol::Http2,
        broadcast: false,
        streams: None,
        tls,
        connect_to,
        ip_version: like.load.ip_version,
    };
    Order {
        schema: like.schema,
        id: like.id.clone(),
        requests: vec![request],
        load,
        ramp_up_s: 0.0,
        duration_s: None,
        count: Some(1),
        allow_remote: like.allow_remote,
        seed: 0,
        zipf: None,
        sequence: None,
        window_s: like.window_s,
        exclude_client_limited: false,
        abort_rule: None,
        goodput: None,
        session: None,
        trace: Some(Trace::default()),
        descriptors: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(name: &str, imports: &[&str]) -> Vec<u8> {
        let dependency = imports.iter().map(|import| (*import).to_owned()).collect();
        let file = FileDescriptorProto {
            name: Some(name.into()),
            dependency,
            ..FileDescriptorProto::default()
        };
        file.encode_to_vec()
    }

    /// What is asked for is in the file of that name.
    fn answer(question: Question, imports: &[&str]) -> Answer {
        let name = if question.symbol.is_empty() { question.file } else { question.symbol };
        Answer { files: Some(Files { files: vec![file(&name, imports)] }), error: None }
    }

    #[test]
    fn imports_are_asked_for_until_all_are_there() {
        let files = files_of("a.B", |questions| {
            let answers = questions.into_iter().map(|question| match question.symbol.as_str() {
                "a.B" => answer(question, &["one", "two"]),
                _ => answer(question, &["two"]),
            });
            Ok(answers.collect())
        });
        let mut names: Vec<_> =
            files.ok().expect("files").file.iter().map(|file| file.name().to_owned()).collect();
        names.sort();
        assert_eq!(names, ["a.B", "one", "two"]);
    }

    #[test]
    fn imports_without_end_end() {
        let endless = files_of("a.B", |questions| {
            let next = format!("{}x", questions[0].file);
            let answers = questions.into_iter().map(|question| answer(question, &[&next]));
            Ok(answers.collect())
        });
        assert!(endless.is_err_and(|failed| failed.why.contains("without end")));
        let refused = files_of("a.B", |_| {
            let error = Some(Refusal { code: 5, message: "no such symbol".into() });
            Ok(vec![Answer { files: None, error }])
        });
        assert!(refused.is_err_and(|failed| failed.why.contains("no such symbol")));
    }
}
