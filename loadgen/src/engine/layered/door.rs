//! Connections that stay between requests and slots.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

use rustls::ClientConfig;
use tokio::sync::Mutex;
use tokio_rustls::TlsConnector;

use super::origin::Origin;
use super::wire::{Wire, is_quiet};
use crate::http1::cookies::CookieJar;
use crate::http2::{Link, LinkEnd};
use crate::tls;

/// A connection that speaks HTTP/1.1.
pub struct Line {
    pub wire: Wire,
    /// Requests it carried.
    pub requests: u32,
    pub jar: CookieJar,
}

impl fmt::Debug for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Line").field("requests", &self.requests).finish_non_exhaustive()
    }
}

/// The place of one connection: it is opened again whenever it was closed.
#[derive(Debug, Default)]
pub struct Door {
    /// HTTP/1.1: present while no request is in flight on it.
    pub line: RefCell<Option<Line>>,
    pub link: RefCell<Option<Rc<Link>>>,
    /// Held by who opens the connection.
    pub opening: Mutex<()>,
    /// Failures since the last answer.
    pub strikes: Cell<u32>,
}

impl Door {
    /// The open HTTP/2 connection, if it takes requests.
    pub fn usable_link(&self) -> Option<Rc<Link>> {
        self.link.borrow().as_ref().filter(|link| link.is_usable()).cloned()
    }

    /// Takes away an HTTP/2 connection that takes no more requests, and says why it doesn't.
    pub fn take_ended_link(&self) -> Option<(Rc<Link>, LinkEnd)> {
        let mut link = self.link.borrow_mut();
        if link.as_ref()?.is_usable() {
            return None;
        }
        let link = link.take()?;
        let end = link.take_end()?;
        Some((link, end))
    }

    pub fn close(&self) {
        self.line.take();
        if let Some(link) = self.link.take() {
            link.cut();
        }
    }

    /// Closes a connection that the server closed while nothing was asked of it.
    async fn close_if_dead(&self) {
        self.take_ended_link();
        let line = self.line.take();
        if let Some(mut line) = line
            && is_quiet(&mut line.wire).await
        {
            *self.line.borrow_mut() = Some(line);
        }
    }
}

/// One thread's connections to one origin.
pub struct Gate {
    pub origin: Origin,
    pub tls: Option<TlsConnector>,
    doors: RefCell<Vec<Rc<Door>>>,
}

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gate").field("origin", &self.origin).finish_non_exhaustive()
    }
}

impl Gate {
    pub fn new(origin: &Origin, config: Option<&ClientConfig>) -> Gate {
        let tls = origin.tls.as_ref().zip(config).map(|((_, options), config)| {
            let config = tls::with_own_sessions(config, options.resumption);
            TlsConnector::from(Arc::new(config))
        });
        Gate { origin: origin.clone(), tls, doors: RefCell::default() }
    }

    /// The door of a slot's connection, by its number.
    pub fn door(&self, number: usize) -> Rc<Door> {
        let mut doors = self.doors.borrow_mut();
        while doors.len() <= number {
            doors.push(Rc::default());
        }
        Rc::clone(&doors[number])
    }

    /// Before a slot: closes what is dead, or everything where connections are not to be reused.
    pub async fn look_after_doors(&self, reuse: bool) {
        let doors = self.doors.borrow().clone();
        for door in doors {
            door.strikes.set(0);
            if reuse {
                door.close_if_dead().await;
            } else {
                door.close();
            }
        }
    }
}
