//! What an order needs of TLS and HTTP/2, made ready.

use std::fmt;

use rustls::ClientConfig;
use rustls::pki_types::ServerName;

use crate::http2::Message;
use crate::order::{Order, Protocol, Tls};
use crate::target::{Address, Target};
use crate::tls;

/// Whom connections are to, and how they are made. Only alike ones can be shared.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Origin {
    pub address: Address,
    pub protocol: Protocol,
    /// With TLS: the name to verify, and how.
    pub tls: Option<(ServerName<'static>, Tls)>,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.address)
    }
}

/// One request: whom it goes to, and its form in HTTP/2 where that is spoken.
#[derive(Debug)]
pub struct Layer {
    /// Index into [`Layers::origins`].
    pub origin: usize,
    pub message: Option<Message>,
}

#[derive(Debug)]
pub struct Layers {
    pub origins: Vec<Origin>,
    /// As many as there are requests.
    pub requests: Vec<Layer>,
    /// Requests at a time on each connection.
    pub streams: usize,
    /// Present when some URL needs it.
    pub tls: Option<ClientConfig>,
}

impl Layers {
    /// A request in its form in HTTP/2, where that is spoken.
    pub fn message(&self, request: usize) -> Option<&Message> {
        self.requests[request].message.as_ref()
    }

    /// `None` when plain HTTP/1.1 is all that is asked for. Errors name the field of the order.
    pub fn of(order: &Order) -> Result<Option<Layers>, String> {
        let load = &order.load;
        let mut targets = Vec::with_capacity(order.requests.len());
        for (index, request) in order.requests.iter().enumerate() {
            let target = Target::parse(&request.url);
            targets.push(target.map_err(|error| format!("requests[{index}].url: {error}"))?);
        }
        let secure = targets.iter().any(|target| target.secure);
        if !secure && load.protocol == Protocol::Http1 {
            return Ok(None);
        }
        let options = load.tls.clone().unwrap_or_default();
        let mut layers = Layers {
            origins: Vec::new(),
            requests: Vec::with_capacity(targets.len()),
            streams: load.streams.unwrap_or(1) as usize,
            tls: if secure { Some(tls::client_config(&options, load.protocol)?) } else { None },
        };
        for (index, (request, target)) in order.requests.iter().zip(targets).enumerate() {
            let message = match load.protocol {
                Protocol::Http1 => None,
                Protocol::Http2 => Some(Message::new(request, &target)),
            };
            let message =
                message.transpose().map_err(|error| format!("requests[{index}].{error}"))?;
            let origin = origin(target, load.protocol, &options)
                .map_err(|error| format!("requests[{index}].url: {error}"))?;
            let known = layers.origins.iter().position(|known| *known == origin);
            layers.requests.push(Layer { origin: known.unwrap_or(layers.origins.len()), message });
            if known.is_none() {
                layers.origins.push(origin);
            }
        }
        Ok(Some(layers))
    }
}

fn origin(target: Target, protocol: Protocol, options: &Tls) -> Result<Origin, String> {
    let tls = if target.secure {
        let name = ServerName::try_from(target.host_name().to_owned())
            .map_err(|_| format!("{:?} is not a name a certificate can have", target.host))?;
        Some((name, options.clone()))
    } else {
        None
    };
    Ok(Origin { address: target.address, protocol, tls })
}
