//! One HTTP/2 connection, shared by many requests.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::{Rc, Weak};
use std::task::{Context, Poll};

use bytes::Bytes;
use h2::client::{Builder, Connection, SendRequest};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Notify;
use tokio::task::{AbortHandle, spawn_local};

use crate::http1::cookies::CookieJar;

/// Flow control windows as Chrome has them, so that it isn't them that limit a server nearby.
const STREAM_WINDOW_BYTES: u32 = 6 << 20;
const CONNECTION_WINDOW_BYTES: u32 = 15 << 20;

/// Why a connection takes no more requests.
#[derive(Debug)]
pub enum LinkEnd {
    /// We are done with it.
    Retired,
    /// The server announced its end; what it has begun it may still answer.
    GoAway,
    /// The server closed it, or it broke.
    Lost(Option<h2::Error>),
}

/// What a [`Link`] may carry.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Requests at a time, if the server allows as many.
    pub streams: usize,
    /// Requests in its life.
    pub requests: u32,
}

#[derive(Debug)]
pub struct Link {
    limits: Limits,
    /// Streams the server allows at a time; 0 before its settings are known.
    allowed: Cell<usize>,
    in_flight: Cell<usize>,
    requests: Cell<u32>,
    /// When a request was answered last; 0 before.
    pub answered_ns: Cell<u64>,
    pub jar: RefCell<CookieJar>,
    /// Gone when no more requests are taken: without it the connection closes after its last one.
    sender: RefCell<Option<SendRequest<Bytes>>>,
    end: RefCell<Option<LinkEnd>>,
    changed: Notify,
    driver: RefCell<Option<AbortHandle>>,
}

/// Leave to have one request in flight.
#[derive(Debug)]
pub struct Permit {
    link: Rc<Link>,
    /// Requests the connection carried before.
    pub nth: u32,
}

impl Permit {
    pub fn link(&self) -> &Link {
        &self.link
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let link = &self.link;
        link.in_flight.set(link.in_flight.get() - 1);
        link.changed.notify_one();
    }
}

/// Begins HTTP/2 on an open connection; ready when the server's settings are known, so that
/// whoever answers does speak HTTP/2.
pub async fn start<T>(wire: T, limits: Limits) -> Result<Rc<Link>, Option<h2::Error>>
where
    T: AsyncRead + AsyncWrite + Unpin + 'static,
{
    let (sender, connection) = Builder::new()
        .initial_max_send_streams(0)
        .enable_push(false)
        .initial_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        // A server may answer wrongly as often as it likes: that is counted, not punished.
        .max_local_error_reset_streams(None)
        .handshake(wire)
        .await?;
    let link = Rc::new(Link {
        limits,
        allowed: Cell::new(0),
        in_flight: Cell::new(0),
        requests: Cell::new(0),
        answered_ns: Cell::new(0),
        jar: RefCell::default(),
        sender: RefCell::new(Some(sender)),
        end: RefCell::default(),
        changed: Notify::new(),
        driver: RefCell::default(),
    });
    let driver = spawn_local(drive(connection, Rc::downgrade(&link)));
    *link.driver.borrow_mut() = Some(driver.abort_handle());
    loop {
        if let Some(end) = link.end.take() {
            return Err(match end {
                LinkEnd::Lost(error) => error,
                LinkEnd::Retired | LinkEnd::GoAway => None,
            });
        }
        if link.allowed.get() > 0 {
            return Ok(link);
        }
        link.changed.notified().await;
    }
}

/// Moves frames until the connection ends.
async fn drive<T>(mut connection: Connection<T, Bytes>, link: Weak<Link>)
where
    T: AsyncRead + AsyncWrite + Unpin,
{
    poll_fn(|cx| {
        let polled = Pin::new(&mut connection).poll(cx);
        let Some(link) = link.upgrade() else { return polled.map(drop) };
        // First, because a GOAWAY may have come together with the end.
        link.look(connection.max_concurrent_send_streams(), cx);
        polled.map(|outcome| link.finish(LinkEnd::Lost(outcome.err())))
    })
    .await;
}

impl Link {
    /// Streams the server allows at a time.
    pub fn allowed(&self) -> usize {
        self.allowed.get()
    }

    /// The connection takes more requests.
    pub fn is_usable(&self) -> bool {
        self.end.borrow().is_none()
    }

    /// Why it takes no more; `None` while it does.
    pub fn take_end(&self) -> Option<LinkEnd> {
        self.end.replace(Some(LinkEnd::Retired))
    }

    /// Waits until one more request may be in flight; `None` when there can be no more.
    pub async fn permit(self: &Rc<Self>) -> Option<Permit> {
        loop {
            if !self.is_usable() {
                return None;
            }
            if self.in_flight.get() < self.allowed.get().min(self.limits.streams) {
                return Some(self.admit());
            }
            self.changed.notified().await;
        }
    }

    fn admit(self: &Rc<Self>) -> Permit {
        let nth = self.requests.get();
        self.in_flight.set(self.in_flight.get() + 1);
        self.requests.set(nth + 1);
        Permit { link: Rc::clone(self), nth }
    }

    /// A handle to send one request with; `None` when the connection ended meanwhile.
    pub fn sender(&self) -> Option<SendRequest<Bytes>> {
        self.sender.borrow().clone()
    }

    /// Takes no more requests when it has carried all it may.
    pub fn retire_if_full(&self) {
        if self.requests.get() >= self.limits.requests {
            self.retire();
        }
    }

    /// Takes no more requests; those in flight are still answered.
    pub fn retire(&self) {
        self.finish(LinkEnd::Retired);
    }

    /// Ends the connection at once, whatever is in flight.
    pub fn cut(&self) {
        self.retire();
        if let Some(driver) = self.driver.take() {
            driver.abort();
        }
    }

    fn finish(&self, end: LinkEnd) {
        let mut known = self.end.borrow_mut();
        if known.is_none() {
            *known = Some(end);
        }
        drop(known);
        self.sender.take();
        self.changed.notify_waiters();
    }

    /// Sees whether the server changed its settings or announced the end.
    fn look(&self, allowed: usize, cx: &mut Context<'_>) {
        if self.allowed.replace(allowed) != allowed {
            self.changed.notify_waiters();
        }
        let ended = match self.sender.borrow_mut().as_mut().map(|sender| sender.poll_ready(cx)) {
            Some(Poll::Ready(Err(error))) => Some(error),
            _ => None,
        };
        match ended {
            Some(error) if error.is_go_away() && error.is_remote() => self.finish(LinkEnd::GoAway),
            Some(error) => self.finish(LinkEnd::Lost(Some(error))),
            None => {}
        }
    }
}
