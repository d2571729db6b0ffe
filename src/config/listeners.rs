//! `listeners`, `advertised.listeners` and the security protocol of each.

use super::Listener;
use super::layers::Layers;
use super::shape::split_list;
use std::collections::HashMap;

/// Where the broker listens and where it is reached.
#[derive(Debug, Default)]
pub(super) struct Listeners {
    pub(super) opened: Vec<Listener>,
    pub(super) advertised: Vec<Listener>,
    pub(super) warnings: Vec<String>,
    /// Keys, and what is wrong with them.
    pub(super) faults: Vec<(&'static str, String)>,
}

const WILDCARD: &str = "clients cannot connect to a wildcard address; name this machine as clients \
     reach it, such as PLAINTEXT://broker.example.com:9092";

impl Listeners {
    pub(super) fn resolve(layers: &Layers<'_>) -> Self {
        let mut found = Self::default();
        let controllers = upper_list(layers, "controller.listener.names");
        let is_controllers = |name: &str| match controllers.is_empty() {
            // Kafka 3 lets a broker leave the key out; nobody calls a broker's listener so.
            true => name == "CONTROLLER",
            false => controllers.iter().any(|controller| controller == name),
        };
        let protocols = found.protocols(layers);
        let all = found.parse("listeners", &layers.text("listeners"));
        let (closed, opened) = all.into_iter().partition(|at| is_controllers(&at.name));
        found.opened = opened;
        found.note_closed(&closed);
        for listener in &found.opened {
            let protocol = protocols.get(&listener.name).map(String::as_str);
            if let Err(reason) = check_protocol(&listener.name, protocol) {
                found.faults.push(("listeners", reason));
            }
        }
        if found.opened.is_empty() && found.faults.is_empty() {
            found.faults.push(("listeners", "there is no listener for clients".to_owned()));
        }
        found.check_apart();
        found.advertise(layers, is_controllers);
        found.check_inter_broker(layers);
        found
    }

    fn note_closed(&mut self, closed: &[Listener]) {
        for listener in closed {
            let name = &listener.name;
            self.warnings.push(format!("listener {name} is not opened: Ottla has no KRaft quorum"));
        }
    }

    fn protocols(&mut self, layers: &Layers<'_>) -> HashMap<String, String> {
        const KEY: &str = "listener.security.protocol.map";
        let text = layers.text(KEY);
        let mut protocols = HashMap::new();
        for item in split_list(&text) {
            let Some((name, protocol)) = item.split_once(':') else {
                self.faults.push((KEY, format!("`{item}` is not NAME:PROTOCOL")));
                continue;
            };
            let (name, protocol) = (name.trim().to_uppercase(), protocol.trim().to_uppercase());
            if !["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"].contains(&protocol.as_str()) {
                self.faults.push((KEY, format!("there is no security protocol `{protocol}`")));
            }
            if protocols.insert(name.clone(), protocol).is_some() {
                self.faults.push((KEY, format!("listener {name} is there twice")));
            }
        }
        protocols
    }

    fn parse(&mut self, key: &'static str, text: &str) -> Vec<Listener> {
        let mut listeners: Vec<Listener> = Vec::new();
        for item in split_list(text) {
            match parse_one(item) {
                Ok(listener) if listeners.iter().any(|other| other.name == listener.name) => {
                    let reason =
                        format!("each listener has a name of its own, {} has two", listener.name);
                    self.faults.push((key, reason));
                }
                Ok(listener) => listeners.push(listener),
                Err(reason) => self.faults.push((key, reason)),
            }
        }
        listeners
    }

    fn check_apart(&mut self) {
        for (index, one) in self.opened.iter().enumerate() {
            for other in &self.opened[index + 1..] {
                let same_host =
                    one.host == other.host || is_wildcard(&one.host) || is_wildcard(&other.host);
                if one.port == other.port && one.port != 0 && same_host {
                    let reason = format!("{} and {} have the same port", one.name, other.name);
                    self.faults.push(("listeners", reason));
                }
            }
        }
    }

    fn advertise(&mut self, layers: &Layers<'_>, is_controllers: impl Fn(&str) -> bool) {
        const KEY: &str = "advertised.listeners";
        let Some(text) = layers.value(KEY).filter(|text| !text.is_empty()) else {
            self.advertised = self.opened.iter().map(reachable).collect();
            let vague = self.opened.iter().any(|listener| is_wildcard(&listener.host));
            if vague && layers.set.contains_key("listeners") {
                let warning = "advertised.listeners is not set: clients are told to connect to \
                     localhost, which only clients on this machine can";
                self.warnings.push(warning.to_owned());
            }
            return;
        };
        let told = self.parse(KEY, &text);
        for listener in told.into_iter().filter(|listener| !is_controllers(&listener.name)) {
            if !self.opened.iter().any(|opened| opened.name == listener.name) {
                let reason = format!("`listeners` has no {}", listener.name);
                self.faults.push((KEY, reason));
            } else if !listener.host.is_empty() && is_wildcard(&listener.host) {
                self.faults.push((KEY, WILDCARD.to_owned()));
            } else {
                self.advertised.push(reachable(&listener));
            }
        }
    }

    fn check_inter_broker(&mut self, layers: &Layers<'_>) {
        const KEY: &str = "inter.broker.listener.name";
        let Some(name) = layers.value(KEY).filter(|name| !name.is_empty()) else { return };
        if layers.set.contains_key("security.inter.broker.protocol") {
            let reason = "security.inter.broker.protocol is set too, only one of them may be";
            self.faults.push((KEY, reason.to_owned()));
        }
        if !self.opened.iter().any(|opened| opened.name == name.to_uppercase()) {
            self.faults.push((KEY, format!("`listeners` has no {name}")));
        }
    }
}

fn upper_list(layers: &Layers<'_>, key: &str) -> Vec<String> {
    split_list(&layers.text(key)).into_iter().map(str::to_uppercase).collect()
}

fn check_protocol(name: &str, protocol: Option<&str>) -> Result<(), String> {
    match protocol {
        Some("PLAINTEXT") => Ok(()),
        Some(other) => Err(format!("{name} speaks {other}, and TLS and SASL are not built yet")),
        None => Err(format!("`listener.security.protocol.map` does not say what {name} speaks")),
    }
}

/// Nobody connects to a wildcard; what a client on this machine can connect to is `localhost`.
/// Kafka takes the machine's own name, which its clients outside a container cannot resolve; its
/// image and the files it ships with advertise `localhost` all the same.
fn reachable(listener: &Listener) -> Listener {
    let host = if is_wildcard(&listener.host) { "localhost" } else { &listener.host };
    Listener { host: host.to_owned(), ..listener.clone() }
}

fn is_wildcard(host: &str) -> bool {
    let unspecified =
        host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_unspecified());
    host.is_empty() || unspecified
}

/// `NAME://host:port`; the host may be empty, or an IPv6 address in brackets, which it loses.
fn parse_one(text: &str) -> Result<Listener, String> {
    let wrong = || format!("`{text}` is not NAME://host:port");
    let (name, address) = text.split_once("://").ok_or_else(wrong)?;
    let (host, port) = split_address(address).ok_or_else(wrong)?;
    let name = name.trim().to_uppercase();
    if name.is_empty() {
        return Err(wrong());
    }
    Ok(Listener { name, host: host.to_owned(), port })
}

/// A host and a port, as `host:port`, `[::1]:port` or `:port`.
pub(super) fn split_address(address: &str) -> Option<(&str, u16)> {
    let (host, port) = address.trim().rsplit_once(':')?;
    let port = port.parse().ok()?;
    let host = match host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
        Some(inner) => inner.parse::<std::net::Ipv6Addr>().is_ok().then_some(inner)?,
        None => host,
    };
    let plain = |c: char| c.is_ascii_alphanumeric() || "-._%:".contains(c);
    let is_plain = host.chars().all(plain);
    // `::1:9092` has no bracket to say where the port begins.
    let bare_v6 = !address.trim().starts_with('[') && host.contains(':');
    (is_plain && !bare_v6).then_some((host, port))
}
