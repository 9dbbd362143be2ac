//! Handlers that call other servers over TLS, for test_outgoing_rust.py.

use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::time::Duration;

use citius_handler::{CallError, Conn, HttpRequest, Outcome, Request, Response, Status, Tls};

const TIMEOUT: Duration = Duration::from_secs(5);

fn text(request: &Request<'_>, name: &str) -> Option<String> {
    let value = request.query_param(name)?;
    Some(String::from_utf8_lossy(value).into_owned())
}

/// `authorities`, `server_name` and `unverified` of the query.
fn tls_of(request: &Request<'_>) -> Tls {
    Tls {
        authorities: text(request, "authorities"),
        server_name: text(request, "server_name"),
        is_unverified: request.query_param("unverified").is_some(),
    }
}

fn tell(response: &mut Response<'_>, error: &CallError) -> Outcome {
    let told = write!(
        response,
        "{} {:?} {}",
        error.status.0, error.reason, error.text
    );
    told.map_err(|_| Status::FAILED)
}

/// `POST /fetch?url=…`: status and content of the response to the body.
fn fetch(request: &Request<'_>, response: &mut Response<'_>) -> Outcome {
    let (url, tls) = (text(request, "url").unwrap_or_default(), tls_of(request));
    let sent = HttpRequest::post(&url, request.body())
        .tls(&tls)
        .timeout(TIMEOUT)
        .send();
    match sent {
        Ok(answer) => {
            response.write_integer(answer.status().into())?;
            response.write(b" ")?;
            response.write(answer.body())
        }
        Err(error) => tell(response, &error),
    }
}

/// `POST /converse?host=…&port=…`: sends the body and returns what comes until the server ends.
fn converse(request: &Request<'_>, response: &mut Response<'_>) -> Outcome {
    let (host, tls) = (text(request, "host").unwrap_or_default(), tls_of(request));
    let port = u16::try_from(request.query_integer("port", 0)?).unwrap_or(0);
    let conn = match Conn::connect(&host, port, Some(&tls), Some(TIMEOUT)) {
        Ok(conn) => conn,
        Err(error) => return tell(response, &error),
    };
    let mut received = Vec::new();
    let mut stream = &conn;
    let talked = stream
        .write_all(request.body())
        .and_then(|()| stream.read_to_end(&mut received));
    match talked {
        Ok(_) => response.write(&received),
        Err(_) => Err(Status::FAILED),
    }
}

citius_handler::export!(fetch, converse);
