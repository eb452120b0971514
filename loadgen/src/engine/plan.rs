//! An order made ready to run: addresses resolved, requests rendered.

use std::fmt;
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::ops::{Range, RangeInclusive};
use std::sync::Arc;

use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use sha2::{Digest, Sha256};

use crate::clock::{MILLISECOND_NS, seconds_to_ns};
use crate::engine::limits;
use crate::engine::users::Sessions;
use crate::events::EventFormat;
use crate::given;
use crate::grpc::reply::Reply;
use crate::http1::head::Asked;
use crate::http1::request::Rendered;
use crate::http2::request::Message;
use crate::http3::request as http3;
use crate::order::{Arrivals, Expect, Load, Loop, Order, Protocol, Request, Think, Tls};
use crate::session::script::Script;
use crate::target::{Address, Resolver, Target, host_name};
use crate::tls;
use crate::websocket::frame::{self, Kind};
use crate::websocket::handshake;

/// One request as the hot path needs it.
#[derive(Debug)]
pub struct Ready {
    pub rendered: Rendered,
    /// In its place where each user asks for something else.
    pub script: Option<Script>,
    /// The same where HTTP/2 is spoken.
    pub message: Option<Message>,
    /// The same where HTTP/3 is spoken: all its frames.
    pub frames: Option<Arc<[u8]>>,
    pub expect: Expect,
    /// Index into [`Plan::origins`].
    pub origin: usize,
    /// What its answer depends on.
    pub asked: Asked,
    /// To ask twice has the effect of asking once (RFC 9110 section 9.2.2).
    pub is_idempotent: bool,
    pub method: String,
    pub url: String,
    /// Index into [`Plan::endpoints`].
    pub endpoint: Option<usize>,
    /// Its own pause after it.
    pub think: Option<Think>,
    /// Its answer is a stream of these.
    pub events: Option<EventFormat>,
    /// It is a call of gRPC, which is answered so.
    pub reply: Option<Reply>,
}

/// Whom connections are to, and how they are made. Only alike ones can be shared.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Origin {
    /// At least one; the next is tried where one can't be connected to.
    pub addresses: Vec<Address>,
    pub protocol: Protocol,
    /// The request that switches to WebSocket, but for its key.
    pub handshake: Option<Box<str>>,
    /// With TLS: the name to verify, and how.
    pub tls: Option<(ServerName<'static>, Tls)>,
    /// What TLS reads from files, as a checksum: a file may be renewed.
    pub tls_files: Option<[u8; 32]>,
    /// The kernel keeps the time when answers arrived.
    pub stamped: bool,
}

impl Origin {
    /// The address that the connection of a number begins with.
    pub fn turn_of(&self, number: usize) -> usize {
        let alike = |address: &&Address| address.is_of_kind(&self.addresses[0]);
        number % self.addresses.iter().take_while(alike).count().max(1)
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let addresses: Vec<String> = self.addresses.iter().map(Address::to_string).collect();
        f.write_str(&addresses.join(", "))
    }
}

#[derive(Debug)]
pub struct Plan {
    pub order: Order,
    /// Those of the order, and those of its login behind them.
    pub requests: Vec<Ready>,
    /// Present where connections are users.
    pub sessions: Option<Sessions>,
    pub origins: Vec<Origin>,
    /// Names of requests that are reported separately.
    pub endpoints: Vec<String>,
    /// Scheme and host of each, for people.
    pub targets: Vec<String>,
    /// Present when some URL needs it.
    pub tls: Option<ClientConfig>,
    /// Of the files that TLS reads.
    tls_files: Option<[u8; 32]>,
    /// Addresses to connect from, in turn; none: the kernel's choice.
    pub sources: Vec<IpAddr>,
    /// Ports that the kernel chooses from: a socket that connects to one of them may meet itself.
    pub local_ports: Option<RangeInclusive<u16>>,
    /// Requests at a time on each connection of the load.
    pub streams: usize,
    pub timeout_ns: u64,
    /// Over this time connections begin, one after the other.
    pub ramp_ns: u64,
    /// Open loop: so late requests may be sent, together with others; 0 is exact.
    pub delay_budget_ns: u64,
    /// Open loop: so long answers may lie in their sockets; 0 where every answer wakes the thread up.
    pub unread_ns: u64,
    /// `u32::MAX` where there is no limit.
    pub requests_per_connection: u32,
    pub ramp_up_ns: u64,
    /// Length of the window; `u64::MAX` when only the count ends it.
    pub duration_ns: u64,
    /// Length of the parts in which the client watches itself.
    pub part_ns: u64,
    /// Requests may need several segments. Only then can Nagle's algorithm delay one: of HTTP/1.1 there
    /// is never another request in flight on the same connection.
    pub no_delay: bool,
    /// Nobody pauses after an answer.
    pub has_no_pauses: bool,
    /// Streams that are under way when the duration is over are left. Where costs are compared, they
    /// are waited for.
    pub leaves_streams: bool,
    /// Each so-many-th request is logged, on each thread.
    pub log_every: Option<NonZeroU32>,
}

/// RFC 9110 section 9.2.2.
const IDEMPOTENT: [&str; 6] = ["GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"];

/// A request up to this long fits into one segment everywhere (RFC 9293: 536 bytes).
const ONE_SEGMENT_BYTES: usize = 536;

impl Plan {
    /// Plans a checked order. Errors name the field.
    pub fn new(order: Order) -> Result<Plan, String> {
        let load = &order.load;
        let streams = load.streams.unwrap_or(1) as usize;
        let mut plan = Plan {
            requests: Vec::with_capacity(order.requests.len()),
            sessions: Sessions::of(&order)?,
            origins: Vec::new(),
            endpoints: Vec::new(),
            targets: Vec::new(),
            tls: None,
            tls_files: tls_files_checksum(load),
            sources: Vec::new(),
            local_ports: limits::local_ports(),
            streams,
            timeout_ns: seconds_to_ns(load.timeout_s),
            ramp_ns: seconds_to_ns(load.connection_ramp_s),
            delay_budget_ns: seconds_to_ns(load.send_delay_budget_s),
            unread_ns: 0,
            requests_per_connection: load.keepalive.limit().unwrap_or(u32::MAX),
            ramp_up_ns: seconds_to_ns(order.ramp_up_s),
            duration_ns: duration_s(&order).map_or(u64::MAX, seconds_to_ns),
            part_ns: seconds_to_ns(order.window_s),
            no_delay: load.protocol != Protocol::Http1,
            has_no_pauses: load.think.is_none(),
            leaves_streams: false,
            log_every: None,
            order,
        };
        plan.no_delay |= plan.sessions.is_some();
        let load = &plan.order.load;
        let mut resolver = Resolver::new(&load.connect_to, load.ip_version);
        let login = plan.order.session.iter().flat_map(|session| session.login.clone().into_iter());
        let named = |list: &str, (index, request)| (format!("{list}[{index}]"), request);
        let asked = plan.order.requests.clone().into_iter().enumerate();
        let all: Vec<_> = asked
            .map(|numbered| named("requests", numbered))
            .chain(login.enumerate().map(|numbered| named("session.login", numbered)))
            .collect();
        for (place, request) in all {
            let ready = plan.ready(&request, &mut resolver).map_err(|e| format!("{place}.{e}"))?;
            plan.has_no_pauses &= ready.think.is_none();
            let secure = plan.origins[ready.origin].tls.is_some();
            plan.no_delay |= secure || ready.rendered.bytes(true).len() > ONE_SEGMENT_BYTES;
            plan.requests.push(ready);
        }
        plan.complete_sessions()?;
        let load = &plan.order.load;
        if plan.origins.iter().any(|origin| origin.tls.is_some()) {
            let options = load.tls.clone().unwrap_or_default();
            plan.tls = Some(tls::client_config(&options, load.protocol)?);
        }
        let mut addresses = plan.origins.iter().flat_map(|origin| &origin.addresses);
        if addresses.any(|address| matches!(address, Address::Unix(..))) {
            if load.protocol == Protocol::Http3 {
                return Err(
                    "load.protocol: HTTP/3 needs UDP, and a Unix socket has none; leave it \
                            out (--http3)"
                        .into(),
                );
            }
            // The kernel keeps no times of arrival there.
            plan.delay_budget_ns = 0;
            if load.kernel_times {
                return Err("load.kernel_times: the kernel keeps no times of arrival on Unix \
                            sockets; leave it out (--kernel-times)"
                    .into());
            }
        }
        if load.protocol == Protocol::Http3 {
            // Nor does QUIC, which has to acknowledge what came.
            plan.delay_budget_ns = 0;
        }
        plan.unread_ns = match plan.delay_budget_ns {
            0 if plan.is_open() && load.kernel_times => MILLISECOND_NS,
            delay_budget_ns => 2 * delay_budget_ns,
        };
        plan.sources = limits::sources(load, plan.origins.iter().flat_map(|o| &o.addresses));
        Ok(plan)
    }

    pub fn is_open(&self) -> bool {
        self.order.load.kind == Loop::Open
    }

    /// The time after the slot's start in which requests that are due enter the result. With a
    /// ramp-up it is the window, at both ends of which the load goes on.
    pub fn window_ns(&self) -> Range<u64> {
        match self.ramp_up_ns {
            0 => 0..u64::MAX,
            ramp_up_ns => ramp_up_ns..ramp_up_ns.saturating_add(self.duration_ns),
        }
    }

    /// How long the load goes on after the window at most: open loop after a ramp-up.
    pub fn tail_ns(&self) -> u64 {
        if self.is_open() && self.ramp_up_ns > 0 { self.timeout_ns } else { 0 }
    }

    fn complete_sessions(&mut self) -> Result<(), String> {
        let Some(mut sessions) = self.sessions.take() else { return Ok(()) };
        if !sessions.is_bare && self.origins.len() > 1 {
            let origins = self.targets.join(" and ");
            return Err(format!("requests: those of users go to one server, not to {origins}"));
        }
        let scripts: Vec<_> = self.requests.iter().map(|request| request.script.as_ref()).collect();
        let endpoints = &mut self.endpoints;
        sessions.complete(&self.order, &scripts, |name| number_of(endpoints, name));
        self.sessions = Some(sessions);
        Ok(())
    }

    fn ready(&mut self, request: &Request, resolver: &mut Resolver) -> Result<Ready, String> {
        let in_url = |error: String| format!("url: {error}");
        let target = Target::parse(&request.url).map_err(in_url)?;
        let addresses = resolver.addresses(&target).map_err(in_url)?;
        if let Some(remote) = addresses.iter().find(|address| !address.leads_here())
            && !self.order.allow_remote
        {
            return Err(in_url(format!(
                "{remote} is not on this machine; if you may load it, set \"allow_remote\": true \
                 (--allow-remote)"
            )));
        }
        let load = &self.order.load;
        let (message, frames) = match load.protocol {
            Protocol::Http1 | Protocol::WebSocket => (None, None),
            Protocol::Http2 => (Some(Message::new(request, &target)?), None),
            Protocol::Http3 => (None, Some(http3::frames(request, &target)?)),
        };
        let is_websocket = load.protocol == Protocol::WebSocket;
        let handshake = is_websocket.then(|| handshake::head(request, &target));
        let tls = match target.secure {
            false => None,
            true => Some((server_name(request, &target)?, load.tls.clone().unwrap_or_default())),
        };
        let rendered = match is_websocket {
            true => message_frame(request),
            false => Rendered::new(request, &target),
        };
        let sessions = self.sessions.as_ref();
        let script = sessions.map(|sessions| sessions.script(request, &target)).transpose()?;
        let endpoint = request.endpoint.as_ref().map(|name| number_of(&mut self.endpoints, name));
        let is_known = |o: &Origin| {
            o.addresses == addresses
                && o.tls == tls
                && o.protocol == load.protocol
                && o.handshake == handshake
        };
        let origin = self.origins.iter().position(is_known).unwrap_or(self.origins.len());
        if origin == self.origins.len() {
            let (addresses, protocol) = (addresses.to_vec(), load.protocol);
            let tls_files = self.tls_files.filter(|_| tls.is_some());
            let stamped = self.delay_budget_ns > 0 || load.kernel_times;
            let origin = Origin { addresses, protocol, handshake, tls, tls_files, stamped };
            self.origins.push(origin);
            self.targets.push(target.origin);
        }
        Ok(Ready {
            rendered,
            script,
            message,
            frames,
            expect: request.expect.clone(),
            origin,
            asked: Asked {
                head: request.method == "HEAD",
                upgrade: is_websocket || request.header("upgrade").is_some(),
            },
            is_idempotent: !is_websocket && IDEMPOTENT.contains(&request.method.as_str()),
            endpoint,
            think: request.think,
            events: request.events,
            reply: request.reply,
            method: request.method.clone(),
            url: request.url.clone(),
        })
    }
}

/// A message of a WebSocket, which is the same on every connection.
fn message_frame(request: &Request) -> Rendered {
    let kind = if request.binary { Kind::Binary } else { Kind::Text };
    let payload = request.body.as_deref().unwrap_or_default();
    let frame = frame::masked(kind, payload, handshake::mask()).into_boxed_slice();
    Rendered { keep: frame.clone(), close: frame }
}

/// The number of a name, which is new or known.
fn number_of(names: &mut Vec<String>, name: &str) -> usize {
    names.iter().position(|known| known == name).unwrap_or_else(|| {
        names.push(name.to_owned());
        names.len() - 1
    })
}

/// Of the files that an order names, where they can be read; reading them once more shows what is
/// wrong.
fn tls_files_checksum(load: &Load) -> Option<[u8; 32]> {
    let tls = load.tls.as_ref()?;
    let mut checksum = Sha256::new();
    for file in [&tls.ca_file, &tls.certificate_file, &tls.key_file].into_iter().flatten() {
        checksum.update(given::read(file).ok()?);
    }
    Some(checksum.finalize().into())
}

/// Whom TLS asks for: the host that the request asks for, where its headers name one.
fn server_name(request: &Request, target: &Target) -> Result<ServerName<'static>, String> {
    let asked = request.header("host").map_or(target.host_name(), host_name);
    ServerName::try_from(asked.to_owned())
        .map_err(|_| format!("{asked:?} is not a name a certificate can have"))
}

/// The order's duration, or what the ramp-up leaves of its timetable.
fn duration_s(order: &Order) -> Option<f64> {
    let stages_s = order.load.arrivals.as_ref().and_then(Arrivals::stages_s);
    let rest_s = stages_s.map(|stages_s| (stages_s - order.ramp_up_s).max(0.0));
    order.duration_s.or(rest_s.filter(|_| order.count.is_none()))
}
