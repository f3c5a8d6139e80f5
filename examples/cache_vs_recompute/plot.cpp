// SPDX-License-Identifier: MIT
//
// Every measured point is a faint dot; the line is a running median, so that one disturbed step does not hide the
// shape.
#include "plot.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace kvasir::example {
namespace {

constexpr double kWidth = 820, kHeight = 470;
constexpr double kLeft = 76, kRight = 158, kTop = 74, kBottom = 58;  // margins
constexpr size_t kMedianReach = 4;                                   // points on each side

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", value);
  return text;
}

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) out += c == '&' ? "&amp;" : c == '<' ? "&lt;" : c == '>' ? "&gt;" : std::string(1, c);
  return out;
}

// Ticks at 1, 2 or 5 times a power of ten, about `wanted` of them up to `largest`.
double tick_step(double largest, double wanted) {
  const double rough = largest / wanted;
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= rough) return factor * power;
  }
  return 10 * power;
}

std::vector<double> running_median(const std::vector<double>& y) {
  std::vector<double> out;
  for (size_t i = 0; i < y.size(); i++) {
    const size_t reach = std::min({kMedianReach, i, y.size() - 1 - i});
    const auto at = [&](size_t index) { return y.begin() + static_cast<std::ptrdiff_t>(index); };
    std::vector<double> window(at(i - reach), at(i + reach + 1));
    std::nth_element(window.begin(), window.begin() + static_cast<std::ptrdiff_t>(reach), window.end());
    out.push_back(window[reach]);
  }
  return out;
}

class Drawing {
 public:
  explicit Drawing(const Plot& plot) : plot_(plot) {
    for (const Series& series : plot.series) {
      for (const double x : series.x) x_end_ = std::max(x_end_, x);
      // One disturbed point must not press everything else down.
      for (const double y : running_median(series.y)) y_end_ = std::max(y_end_, y);
    }
    y_end_ = std::max(y_end_ * 1.08, 1e-9);
    x_end_ = std::max(x_end_, 1.0);
  }
  std::string draw();

 private:
  double px(double x) const { return kLeft + x / x_end_ * (kWidth - kLeft - kRight); }
  double py(double y) const { return kHeight - kBottom - y / y_end_ * (kHeight - kTop - kBottom); }
  void text(double x, double y, const std::string& attributes, const std::string& content) {
    svg_ +=
        "<text x=\"" + number(x) + "\" y=\"" + number(y) + "\" " + attributes + ">" + escaped(content) + "</text>\n";
  }
  void line(double x1, double y1, double x2, double y2, const char* color) {
    svg_ += "<line x1=\"" + number(x1) + "\" y1=\"" + number(y1) + "\" x2=\"" + number(x2) + "\" y2=\"" + number(y2) +
            "\" stroke=\"" + color + "\"/>\n";
  }
  void draw_axes();
  void draw_series(const Series& series);

  const Plot& plot_;
  double x_end_ = 0, y_end_ = 0;
  std::string svg_;
};

void Drawing::draw_axes() {
  constexpr const char* kTick = "font-size=\"12\" fill=\"#555555\"";
  const double y_step = tick_step(y_end_, 6);
  for (double y = 0; y <= y_end_; y += y_step) {
    line(px(0), py(y), kWidth - kRight, py(y), y == 0 ? "#888888" : "#e6e6e6");
    text(px(0) - 8, py(y) + 4, std::string(kTick) + " text-anchor=\"end\"", number(y));
  }
  const double x_step = tick_step(x_end_, 8);
  for (double x = 0; x <= x_end_; x += x_step) {
    line(px(x), py(0), px(x), py(0) + 5, "#888888");
    text(px(x), py(0) + 20, std::string(kTick) + " text-anchor=\"middle\"", number(x));
  }
  constexpr const char* kLabel = "font-size=\"13\" fill=\"#333333\" text-anchor=\"middle\"";
  text((kLeft + kWidth - kRight) / 2, kHeight - 14, kLabel, plot_.x_label);
  const double middle = (kTop + kHeight - kBottom) / 2;
  text(22, middle, std::string(kLabel) + " transform=\"rotate(-90 22 " + number(middle) + ")\"", plot_.y_label);
}

void Drawing::draw_series(const Series& series) {
  if (series.x.empty()) return;
  for (size_t i = 0; i < series.x.size(); i++) {
    if (series.y[i] > y_end_) continue;
    svg_ += "<circle cx=\"" + number(px(series.x[i])) + "\" cy=\"" + number(py(series.y[i])) + "\" r=\"1.8\" fill=\"" +
            series.color + "\" fill-opacity=\"0.3\"/>\n";
  }
  const std::vector<double> smooth = running_median(series.y);
  svg_ += "<polyline fill=\"none\" stroke-width=\"2.5\" stroke-linejoin=\"round\" stroke=\"" + series.color +
          "\" points=\"";
  for (size_t i = 0; i < smooth.size(); i++) svg_ += number(px(series.x[i])) + "," + number(py(smooth[i])) + " ";
  svg_ += "\"/>\n";
  text(px(series.x.back()) + 10, py(smooth.back()) + 4,
       "font-size=\"14\" font-weight=\"600\" fill=\"" + series.color + "\"", series.label);
}

std::string Drawing::draw() {
  svg_ = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + number(kWidth) + "\" height=\"" + number(kHeight) +
         "\" viewBox=\"0 0 " + number(kWidth) + " " + number(kHeight) +
         "\" font-family=\"Helvetica, Arial, sans-serif\">\n" +
         "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n";
  text(kLeft, 32, "font-size=\"19\" font-weight=\"600\" fill=\"#222222\"", plot_.title);
  text(kLeft, 53, "font-size=\"13\" fill=\"#555555\"", plot_.subtitle);
  draw_axes();
  for (const Series& series : plot_.series) draw_series(series);
  return svg_ + "</svg>\n";
}

}  // namespace

std::string svg_of(const Plot& plot) { return Drawing(plot).draw(); }

}  // namespace kvasir::example
