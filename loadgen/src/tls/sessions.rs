//! Sessions to resume, of one server. rustls's own store keeps 8 tickets, too few for hundreds of
//! connections that are opened at once.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use rustls::NamedGroup;
use rustls::client::{ClientSessionStore, Tls12ClientSessionValue, Tls13ClientSessionValue};
use rustls::pki_types::ServerName;

const MOST_TICKETS: usize = 1024;

#[derive(Debug, Default)]
struct Kept {
    group: Option<NamedGroup>,
    tls12: Option<Tls12ClientSessionValue>,
    tls13: VecDeque<Tls13ClientSessionValue>,
}

#[derive(Debug, Default)]
pub struct Sessions(Mutex<Kept>);

impl Sessions {
    fn with<T>(&self, act: impl FnOnce(&mut Kept) -> T) -> T {
        // Every change is one step, so what is kept is whole even after a panic.
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl ClientSessionStore for Sessions {
    fn set_kx_hint(&self, _: ServerName<'static>, group: NamedGroup) {
        self.with(|kept| kept.group = Some(group));
    }

    fn kx_hint(&self, _: &ServerName<'_>) -> Option<NamedGroup> {
        self.with(|kept| kept.group)
    }

    fn set_tls12_session(&self, _: ServerName<'static>, value: Tls12ClientSessionValue) {
        self.with(|kept| kept.tls12 = Some(value));
    }

    fn tls12_session(&self, _: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        self.with(|kept| kept.tls12.clone())
    }

    fn remove_tls12_session(&self, _: &ServerName<'static>) {
        self.with(|kept| kept.tls12 = None);
    }

    fn insert_tls13_ticket(&self, _: ServerName<'static>, value: Tls13ClientSessionValue) {
        self.with(|kept| {
            if kept.tls13.len() == MOST_TICKETS {
                kept.tls13.pop_front();
            }
            kept.tls13.push_back(value);
        });
    }

    /// The newest, which the server is most likely to still know.
    fn take_tls13_ticket(&self, _: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        self.with(|kept| kept.tls13.pop_back())
    }
}
