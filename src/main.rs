//! The command line.

use anyhow::Context;
use clap::{Parser, Subcommand, ValueEnum};
use ottla::config::{Loaded, Sources};
use ottla::logging;
use ottla::server::Server;
use std::path::PathBuf;
use std::process::ExitCode;
use tokio::signal::unix::{SignalKind, signal};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A broker that speaks Kafka's wire protocol.
#[derive(Debug, Parser)]
#[command(version, about)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Runs a broker. Without arguments: data in ./data, port 9092.
    Start {
        #[command(flatten)]
        settings: Settings,
        /// What is logged, such as `info` or `ottla.net=debug,info`.
        #[arg(long, default_value = "info")]
        log: String,
        /// How it is logged.
        #[arg(long, value_enum, default_value_t = LogFormat::Text)]
        log_format: LogFormat,
    },
    /// Prints every setting with its value, where it comes from, and whether Ottla honours it.
    Config {
        #[command(flatten)]
        settings: Settings,
    },
    /// Sends a message to a broker and reads it back.
    Ping {
        /// The broker's address.
        #[arg(long, default_value = "127.0.0.1:9092")]
        bootstrap: String,
        /// The topic, made if it is not there.
        #[arg(long, default_value = "ottla-ping")]
        topic: String,
        /// What is sent.
        #[arg(default_value = "ping")]
        message: String,
    },
}

/// Where settings come from; later ones win: the file, `KAFKA_…` in the environment, overrides.
#[derive(Debug, clap::Args)]
struct Settings {
    /// A `server.properties` as Kafka has it.
    #[arg(long)]
    config: Option<PathBuf>,
    /// A setting, as key=value; may be given several times.
    #[arg(long = "override", value_name = "KEY=VALUE")]
    overrides: Vec<String>,
}

impl Settings {
    fn load(self) -> anyhow::Result<Loaded> {
        let environment = std::env::vars_os()
            .filter_map(|(key, value)| Some((key.into_string().ok()?, value.into_string().ok()?)))
            .collect();
        let sources = Sources { file: self.config, overrides: self.overrides, environment };
        Ok(ottla::config::load(sources)?)
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum LogFormat {
    Text,
    Json,
}

impl From<LogFormat> for logging::Format {
    fn from(format: LogFormat) -> Self {
        match format {
            LogFormat::Text => Self::Text,
            LogFormat::Json => Self::Json,
        }
    }
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match run(arguments.command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("ottla: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> anyhow::Result<()> {
    match command {
        Command::Ping { bootstrap, topic, message } => {
            println!("{}", ottla::ping::ping(&bootstrap, &topic, &message)?);
            Ok(())
        }
        Command::Config { settings } => {
            let loaded = settings.load()?;
            for warning in &loaded.warnings {
                eprintln!("ottla: {warning}");
            }
            print!("{}", ottla::config::report(&loaded));
            Ok(())
        }
        Command::Start { settings, log, log_format } => {
            let loaded = settings.load()?;
            logging::init(&log, log_format.into()).with_context(|| format!("--log={log}"))?;
            for warning in &loaded.warnings {
                tracing::warn!("{warning}");
            }
            ottla::server::abort_on_panic();
            let runtime = tokio::runtime::Builder::new_multi_thread()
                .enable_all()
                .max_blocking_threads(ottla::server::BLOCKING_THREADS)
                .build()
                .context("the runtime does not start")?;
            runtime.block_on(serve(loaded))
        }
    }
}

async fn serve(loaded: Loaded) -> anyhow::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let server = Server::start(loaded).await?;
    tokio::select! { _ = terminate.recv() => {}, _ = interrupt.recv() => {} }
    // A second signal does not wait for anything.
    tokio::select! {
        () = server.stop() => Ok(()),
        _ = terminate.recv() => anyhow::bail!("stopped at once by a second signal"),
        _ = interrupt.recv() => anyhow::bail!("stopped at once by a second signal"),
    }
}
