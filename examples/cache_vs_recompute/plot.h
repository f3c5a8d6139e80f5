// SPDX-License-Identifier: MIT
//
// A line plot as an SVG file: two axes from zero, one line per series, labels at the lines' ends.
#pragma once

#include <string>
#include <vector>

namespace kvasir::example {

struct Series {
  std::string label;
  std::string color;         // "#1f77b4"
  std::vector<double> x, y;  // same length; x rises
};

struct Plot {
  std::string title, subtitle, x_label, y_label;
  std::vector<Series> series;
};

std::string svg_of(const Plot& plot);

}  // namespace kvasir::example
