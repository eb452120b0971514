//! A shop with a login: a form with a token, cookies, a list to choose from and orders.

use std::collections::{BTreeMap, HashMap};
use std::io::Write;
use std::sync::{Arc, Mutex};

use flate2::Compression;
use flate2::write::GzEncoder;
use percent_encoding::percent_decode_str;
use serde_json::Value;

use crate::support::{Client, Server};

/// What the shop knows.
#[derive(Default)]
pub struct Books {
    /// Tokens of forms by the cookie that goes with them.
    tokens: HashMap<String, String>,
    /// Names by session.
    sessions: HashMap<String, String>,
    /// What each session was offered last.
    offers: HashMap<String, String>,
    given: u64,
    /// How often each user logged in.
    pub logins: BTreeMap<String, u64>,
    pub counts: BTreeMap<&'static str, u64>,
    /// Labels of the orders that came.
    pub labels: Vec<String>,
    /// Sessions end after so many requests.
    pub patience: Option<u64>,
}

pub struct Shop {
    pub server: Server,
    pub books: Arc<Mutex<Books>>,
}

impl Shop {
    pub fn open() -> Shop {
        let books = Arc::new(Mutex::new(Books::default()));
        let open = Arc::clone(&books);
        let server = Server::start(move |mut client| {
            while let Some((head, body)) = request(&mut client) {
                let answer = open.lock().expect("books").answer(&head, &body);
                client.write(&answer);
            }
        });
        Shop { server, books }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.server.address)
    }

    pub fn with<T>(&self, look: impl FnOnce(&mut Books) -> T) -> T {
        look(&mut self.books.lock().expect("books"))
    }

    pub fn count(&self, what: &str) -> u64 {
        self.with(|books| books.counts.get(what).copied().unwrap_or_default())
    }
}

/// A request with its body.
fn request(client: &mut Client) -> Option<(String, String)> {
    use std::io::Read;
    let head = client.request()?;
    let length = field(&head, "content-length").and_then(|it| it.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    client.stream.read_exact(&mut body).ok()?;
    Some((head, String::from_utf8_lossy(&body).into_owned()))
}

fn field(head: &str, name: &str) -> Option<String> {
    head.lines().find_map(|line| {
        let (known, value) = line.split_once(": ")?;
        known.eq_ignore_ascii_case(name).then(|| value.to_owned())
    })
}

fn cookie(head: &str, name: &str) -> Option<String> {
    let all = field(head, "cookie")?;
    let found = all.split("; ").find_map(|it| it.strip_prefix(&format!("{name}=")[..]));
    found.map(Into::into)
}

fn form(body: &str, name: &str) -> String {
    let parts = body.split('&').filter_map(|part| part.split_once('='));
    let value = parts.into_iter().find(|(known, _)| *known == name).map_or("", |(_, value)| value);
    percent_decode_str(value).decode_utf8_lossy().into_owned()
}

fn answer(status: &str, fields: &str, body: &[u8]) -> Vec<u8> {
    let head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n{fields}\r\n", body.len());
    [head.as_bytes(), body].concat()
}

impl Books {
    fn next(&mut self) -> u64 {
        self.given += 1;
        self.given
    }

    fn answer(&mut self, head: &str, body: &str) -> Vec<u8> {
        let mut words = head.split(' ');
        let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        match (method, path.split('?').next().unwrap_or_default()) {
            ("GET", "/login") => self.form(),
            ("POST", "/login") => self.log_in(head, body),
            ("POST", "/token") => self.give_token(body),
            _ => self.private(method, path, head, body),
        }
    }

    fn form(&mut self) -> Vec<u8> {
        *self.counts.entry("form").or_default() += 1;
        let number = self.next();
        let token = format!("t{number}+/=&\"é x");
        self.tokens.insert(number.to_string(), token.clone());
        let escaped = token.replace('&', "&amp;").replace('"', "&quot;").replace('+', "&#43;");
        let page = format!(
            "<!-- <input name=csrf value=old> --><form id=search><input name=csrf value=no></form>\
             <form id=login method=post><input type='hidden' name='csrf' value=\"{escaped}\">"
        );
        let fields = format!("Set-Cookie: pre={number}; Path=/login\r\nSet-Cookie: seen=1\r\n");
        answer("200 OK", &fields, page.as_bytes())
    }

    fn log_in(&mut self, head: &str, body: &str) -> Vec<u8> {
        let known = cookie(head, "pre").and_then(|pre| self.tokens.get(&pre).cloned());
        if known != Some(form(body, "csrf")) {
            return answer("403 Forbidden", "", b"CSRF token missing or incorrect");
        }
        let user = form(body, "user");
        if form(body, "password") != format!("pw&{user}") {
            return answer("200 OK", "", b"<p>Wrong name or password</p>");
        }
        *self.logins.entry(user.clone()).or_default() += 1;
        let session = format!("s{}", self.next());
        self.sessions.insert(session.clone(), user);
        let fields = format!(
            "Location: /home\r\nSet-Cookie: pre=; Max-Age=0; Path=/login\r\n\
             Set-Cookie: session={session}; Path=/; HttpOnly; Secure; Max-Age=3600\r\n"
        );
        answer("302 Found", &fields, b"")
    }

    fn give_token(&mut self, body: &str) -> Vec<u8> {
        let asked: Value = serde_json::from_str(body).unwrap_or_default();
        let user = asked["user"].as_str().unwrap_or_default().to_owned();
        if asked["password"] != format!("pw&{user}") {
            return answer("401 Unauthorized", "", b"{\"error\": \"bad credentials\"}");
        }
        *self.logins.entry(user.clone()).or_default() += 1;
        let token = format!("jwt.{}", self.next());
        self.sessions.insert(token.clone(), user);
        let body = format!("{{\"data\": [{{\"token\": \"{token}\"}}]}}");
        let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
        packed.write_all(body.as_bytes()).expect("memory");
        answer("200 OK", "Content-Encoding: gzip\r\n", &packed.finish().expect("memory"))
    }

    fn private(&mut self, method: &str, path: &str, head: &str, body: &str) -> Vec<u8> {
        let bearer = field(head, "authorization");
        let bearer = bearer.and_then(|it| it.strip_prefix("Bearer ").map(Into::into));
        let session: String = cookie(head, "session").or(bearer).unwrap_or_default();
        let Some(user) = self.sessions.get(&session).cloned() else {
            return answer("302 Found", "Location: /login\r\n", b"");
        };
        if let Some(patience) = &mut self.patience {
            *patience = patience.saturating_sub(1);
            if *patience == 0 {
                return answer("401 Unauthorized", "", b"{\"error\": \"token expired\"}");
            }
        }
        let count = |books: &mut Books, what| *books.counts.entry(what).or_default() += 1;
        if path == "/home" {
            count(self, "home");
            return answer("200 OK", "", format!("Welcome {user}").as_bytes());
        }
        if path == "/items" {
            count(self, "items");
            let offer = self.next().to_string();
            self.offers.insert(session, offer.clone());
            let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
            let rest = format!("[{{\"id\": {offer}}}]");
            return format!(
                "{head}8\r\n{{\"items\"\r\n2\r\n: \r\n{:x}\r\n{rest}\r\n1\r\n}}\r\n0\r\n\r\n",
                rest.len()
            )
            .into_bytes();
        }
        if (method, path) == ("POST", "/cart") {
            let asked: Value = serde_json::from_str(body).unwrap_or_default();
            if asked["item"].as_str() != self.offers.get(&session).map(String::as_str) {
                return answer("409 Conflict", "", b"you were never offered this");
            }
            count(self, "cart");
            self.labels.push(asked["label"].as_str().unwrap_or_default().to_owned());
            let order = format!("X-Order: /orders/{user}?of=a%20b&n=1\r\n");
            return answer("201 Created", &order, b"");
        }
        if path == format!("/orders/{user}?of=a%20b&n=1") {
            count(self, "order");
            return answer("200 OK", "", b"Thank you");
        }
        answer("404 Not Found", "", b"no such page")
    }
}
