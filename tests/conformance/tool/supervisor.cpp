// SPDX-License-Identifier: MIT
//
// One worker after another: each goes on where the last one died.
#include "supervisor.h"

#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <stdexcept>

#include "catalogue.h"
#include "messages.h"
#include "surroundings.h"
#include "worker.h"

namespace kvasir::conformance {
namespace {

using Clock = std::chrono::steady_clock;

[[noreturn]] void refuse(const char* what) {
  throw std::runtime_error(std::string("the system refuses ") + what + ": " + std::strerror(errno));
}

// A child that runs cases from `first` on.
class Worker {
 public:
  Worker(const std::vector<Case>& cases, size_t first, const Options& options) {
    capture_ = memfd_create("kvasir-backend-test", MFD_CLOEXEC);
    if (capture_ < 0) refuse("a temporary file");
    int ends[2];
    if (pipe(ends) != 0) refuse("a pipe");
    std::fflush(nullptr);
    pid_ = fork();
    if (pid_ < 0) refuse("a process");
    if (pid_ == 0) {
      close(ends[0]);
      setpgid(0, 0);
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      work(cases, first, options, ends[1], capture_);
    }
    setpgid(pid_, pid_);  // whichever of the two comes first
    close(ends[1]);
    pipe_ = ends[0];
  }
  ~Worker() {
    if (pid_ > 0) stop();
    close(pipe_);
    close(capture_);
  }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  enum class Event { kLine, kEnd, kLate };

  // The next line, the end of the pipe, or that nothing came until `deadline`.
  Event next(Clock::time_point deadline, std::string* line) {
    while (true) {
      if (const size_t end = buffer_.find('\n'); end != std::string::npos) {
        *line = buffer_.substr(0, end);
        buffer_.erase(0, end + 1);
        return Event::kLine;
      }
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
      if (left <= 0) return Event::kLate;
      pollfd waiting{pipe_, POLLIN, 0};
      if (poll(&waiting, 1, static_cast<int>(std::min<long long>(left + 1, 60000))) <= 0) continue;
      char data[4096];
      const ssize_t length = read(pipe_, data, sizeof data);
      if (length < 0 && errno == EINTR) continue;
      if (length <= 0) return Event::kEnd;
      buffer_.append(data, static_cast<size_t>(length));
    }
  }

  void stop() {
    kill(-pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }

  // Waits for the end of the process: "" when it ended well, else how it died.
  std::string death() {
    int status = 0;
    while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    kill(-pid_, SIGKILL);  // what it may have left behind
    pid_ = 0;
    std::string sentence;
    if (WIFSIGNALED(status)) {
      const char* name = sigabbrev_np(WTERMSIG(status));
      sentence = "killed by signal " + std::to_string(WTERMSIG(status)) + " (SIG" + (name ? name : "?") + ")";
    } else if (WEXITSTATUS(status) != 0) {
      sentence = "the process exited with status " + std::to_string(WEXITSTATUS(status));
    }
    return sentence;
  }

  std::string printed() const {
    const std::string text = Capture(capture_).taken();
    return text.empty() ? "" : "; the plugin printed \"" + text + "\"";
  }

 private:
  pid_t pid_ = 0;
  int pipe_ = -1;
  int capture_ = -1;
  std::string buffer_;
};

class Supervisor {
 public:
  Supervisor(const std::vector<Case>& cases, const Options& options, const Progress& progress)
      : cases_(cases), options_(options), progress_(progress) {}

  Report run() {
    const Clock::time_point start = Clock::now();
    while (report_.refusal.empty() && next_ < cases_.size()) {
      if (!follow_worker()) break;
    }
    report_.milliseconds = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
    return std::move(report_);
  }

 private:
  // One worker from its start to its end; false when another one makes no sense.
  bool follow_worker() {
    Worker worker(cases_, next_, options_);
    const size_t first = next_;
    opened_ = running_ = false;
    while (true) {
      std::string line;
      const auto limit = std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(options_.timeout_s));
      const Worker::Event event = worker.next(Clock::now() + limit, &line);
      if (event == Worker::Event::kLine) {
        handle(from_line(line));
        continue;
      }
      std::string death;
      if (event == Worker::Event::kLate) {
        worker.stop();
        char text[64];
        std::snprintf(text, sizeof text, "took longer than %g s", options_.timeout_s);
        death = text;
      } else {
        death = worker.death();
      }
      after_death(death, worker.printed());
      return next_ > first;  // else the next worker would get no further
    }
  }

  void handle(const Message& message) {
    switch (message.kind) {
      case MessageKind::kOpened:
        report_.opened = opened_ = true;
        report_.facts = message.facts;
        return;
      case MessageKind::kRefused: report_.refusal = message.refusal; return;
      case MessageKind::kBegin: running_ = true; return;
      case MessageKind::kEnd: finish(message.outcome); return;
    }
  }

  void after_death(const std::string& death, const std::string& printed) {
    if (!report_.refusal.empty() || (opened_ && report_.facts.devices == 0)) return;
    if (running_) {
      finish({Result::kFail, (death.empty() ? "the process exited with status 0" : death) + printed, 0, {}});
    } else if (!opened_ || report_.outcomes.empty()) {
      report_.refusal = "while the plugin was opened: " + (death.empty() ? "the process exited" : death) + printed;
    } else if (!death.empty()) {  // a thread that outlived its case
      Outcome& last = report_.outcomes.back();
      last.result = Result::kFail;
      last.reason += (last.reason.empty() ? "after the case: " : "; after the case: ") + death + printed;
    }
  }

  // The outcome of case next_, as seen through the list of expected failures.
  void finish(Outcome outcome) {
    const Case& item = cases_[next_++];
    running_ = false;
    if (matches_any(item.name, options_.expected)) {
      if (outcome.result == Result::kFail) {
        outcome.result = Result::kExpectedFailure;
      } else if (outcome.result == Result::kPass) {
        outcome.result = Result::kFail;
        outcome.reason = "passed, but is listed as expected to fail";
      }
    }
    progress_(item, outcome);
    report_.outcomes.push_back(std::move(outcome));
  }

  const std::vector<Case>& cases_;
  const Options& options_;
  const Progress& progress_;
  Report report_;
  size_t next_ = 0;  // the case that runs or comes next
  bool opened_ = false, running_ = false;
};

}  // namespace

Report run_cases(const std::vector<Case>& cases, const Options& options, const Progress& progress) {
  return Supervisor(cases, options, progress).run();
}

}  // namespace kvasir::conformance
