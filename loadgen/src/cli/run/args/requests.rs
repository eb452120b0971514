//! Flags of what is asked for.

use std::path::PathBuf;

use crate::cli::units;
use crate::events::EventFormat;
use crate::order::bounds::STEEPEST_ZIPF;

#[derive(Debug, clap::Args)]
pub struct RequestFlags {
    /// Method
    #[arg(short, long, value_name = "NAME", default_value = "GET", visible_short_alias = 'X')]
    pub method: String,
    /// A header field, `Name: value`; may be repeated [default: Host and User-Agent]
    #[arg(short = 'H', long = "header", value_name = "FIELD", value_parser = units::header)]
    pub headers: Vec<(String, String)>,
    /// Name and password, sent with each request (basic authentication) [default: none]
    #[arg(short, long, value_name = "NAME:PASSWORD")]
    pub user: Option<String>,
    /// Token, sent with each request: `Authorization: Bearer TOKEN` [default: none]
    #[arg(long, value_name = "TOKEN", conflicts_with = "user")]
    pub bearer: Option<String>,
    /// Ask for compressed bodies, as browsers do, or messages of gRPC; they are counted as they come,
    /// compressed
    /// [default: not asked for]
    #[arg(long)]
    pub compressed: bool,
    /// Body of each request, or @FILE to read it [default: none]
    #[arg(short = 'D', long, value_name = "TEXT")]
    pub data: Option<String>,
    /// WebSocket: message that is sent again and again, each time the one before is answered or is due;
    /// gRPC: the message as JSON, a list where the method takes a stream; or @FILE to read it
    /// [default: none; gRPC: {}]
    #[arg(long, value_name = "TEXT", conflicts_with_all = ["data", "method", "replay"])]
    pub message: Option<String>,
    /// gRPC: a FileDescriptorSet that has the service, as protoc -o writes it [default: the server is
    /// asked, by reflection]
    #[arg(long, value_name = "FILE")]
    pub protoset: Option<PathBuf>,
    /// WebSocket: one more connection sends the message, and all --connections have to receive it;
    /// what one of them receives counts as a response [default: each sends, and is answered]
    #[arg(long, requires = "message")]
    pub broadcast: bool,
    /// WebSocket: the message is binary [default: it is text]
    #[arg(long, requires = "message")]
    pub binary: bool,
    /// A file of requests, one JSON object a line: {"url": …, "method": …, "headers": {…},
    /// "body": …, "weight": …, "expect": {…}} [default: none]
    #[arg(long, value_name = "FILE",
          conflicts_with_all = ["data", "message", "method", "headers", "user", "bearer", "compressed",
                                "events", "expect_status", "expect_bytes", "expect_sha256"])]
    pub traffic: Option<PathBuf>,
    /// Choose by Zipf's law with this exponent: the first request most often [default: all alike]
    #[arg(long, value_name = "EXPONENT", value_parser = units::above_0::<STEEPEST_ZIPF>, conflicts_with_all = ["replay", "traffic"])]
    pub zipf: Option<f64>,
    /// An access log in combined format to replay against the URL, with its own times, or at
    /// --rate [default: none]
    #[arg(long, value_name = "FILE",
          conflicts_with_all = ["times", "stages", "conn_rate", "traffic", "data", "method"])]
    pub replay: Option<PathBuf>,
    /// How much faster than it was the log is replayed [default: 1]
    #[arg(long, value_name = "FACTOR", value_parser = units::above_0::<1_000_000>, requires = "replay", conflicts_with = "rate")]
    pub replay_speed: Option<f64>,
    /// Send one request, and show it and its response whole [default: load]
    #[arg(long, conflicts_with_all = ["replay", "json", "hdr",
          "csv", "prometheus", "log_requests", "fail_if", "stop_if", "timetable"])]
    pub once: bool,
    /// Responses are streams: time each server-sent event (sse), line (lines) or message (grpc)
    /// [default: only whole responses]
    #[arg(long, value_name = "FORMAT", value_enum)]
    pub events: Option<EventFormat>,
    /// Each connection sends back the cookies it is given [default: they are ignored]
    #[arg(long)]
    pub cookies: bool,
}
