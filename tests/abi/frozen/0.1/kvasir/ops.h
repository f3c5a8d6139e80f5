/* SPDX-License-Identifier: MIT
 *
 * ops.h: the specification of the transformer ops that programs are made of. Self-contained; C99 and C++.
 * backends/ref is the normative implementation. Draft (ABI major 0): a plugin must be built for the exact revision in
 * backend.h.
 *
 * A program is a flat list of ops over values, made once by the runtime and compiled once by the backend. Ops run in
 * order. One dimension is symbolic: the number of tokens T of a step (and O, the number of rows selected for output).
 * Every activation is a row-major f32 matrix [rows, width] with rows = T (KVB_ROWS_TOKENS), O (KVB_ROWS_OUTPUTS) or
 * T * n for expert ops.
 *
 * Rounding and accumulation. A sum over the width of a row (dot products, mean squares, softmax sums) is accumulated in
 * f32 or better, in an order that depends only on the width and on absolute cache positions, never on T, on the other
 * rows of the step, or on the number of threads. `ref` accumulates in double. Everything between ops is f32.
 * In-place use: an elementwise op (RMS_NORM, LAYER_NORM, ROPE, GLU, ACTIVATION, ADD, SCALE, SOFTCAP) may name the same
 * value as input and output. LINEAR, ATTENTION, EMBED, SELECT_ROWS may not.
 */
#ifndef KVASIR_OPS_H
#define KVASIR_OPS_H

#include <stdint.h>

#include "kvasir/types.h"

#ifdef __cplusplus
extern "C" {
#endif

#define KVB_NONE 0xffffffffu /* an absent operand, page, index */

/* ---- values -------------------------------------------------------------------------------------------------------
 * Frozen element of kvb_program_desc.values (which carries a stride). 32 bytes. */
typedef struct kvb_value {
  uint32_t kind;  /* KVB_VALUE_* */
  uint32_t type;  /* KV_TYPE_*; activations are KV_TYPE_F32, router ids KVB_TYPE_I32 */
  uint32_t rows;  /* activation: KVB_ROWS_*; weight: out (number of rows) */
  uint32_t width; /* elements per row; weight: in */
  uint32_t
      depth; /* weight: matrices stacked (experts, heads), else 1; activation: rows per token (experts used), else 1 */
  uint32_t reserved;
  uint64_t
      place; /* scratch: byte offset planned by the runtime, multiple of 64; weight: index into the weights given to
                     program_compile; output: 0 */
} kvb_value;

enum { KVB_TYPE_I32 = 64 }; /* values only: int32 expert ids */

enum {
  KVB_VALUE_SCRATCH = 1, /* activation between ops; offsets of values that live at different times overlap */
  KVB_VALUE_WEIGHT = 2,  /* [depth][rows][width] in `type` */
  KVB_VALUE_OUTPUT = 3 /* the rows handed to the host at the end of the step: [O, width] f32; exactly one per program */
};

enum {
  KVB_ROWS_TOKENS = 1, /* T */
  KVB_ROWS_OUTPUTS = 2 /* O */
};

/* ---- ops ----------------------------------------------------------------------------------------------------------
 * Frozen element of kvb_program_desc.ops (which carries a stride). 64 bytes. Operands are indices into `values` or
 * KVB_NONE. A float parameter is stored by its bits. Unused parameters and flags are 0. */
typedef struct kvb_op {
  uint16_t code;  /* KVB_OP_* */
  uint16_t group; /* KVB_GROUP_*, 0 = in no group */
  uint16_t layer; /* decoder layer, for messages and traces; 0xffff = before or after the layers */
  uint16_t flags; /* KVB_OP_FLAG_* */
  uint32_t in[6];
  uint32_t out[2];
  uint32_t param[6];
} kvb_op;

enum {
  KVB_OP_FLAG_GROUP_BEGIN = 1 /* first op of its canonical group; the group ends before the next BEGIN or other group */
};

/* Notation: x[t] row t of in[0]; W weight [out, in]; p0..p5 the parameters. Vectors (norm weights, biases, sinks, slopes)
 * are f32, whatever the type of the matrices.
 *
 * Mandatory ("core profile"): a backend must run all nine.
 *
 * EMBED        in0 table [vocab, n] or NONE; in1 position table [positions, n] or NONE (optional: learned positions)
 *              out0 [T, n].  p0 f32 scale (of table rows only; 0 means 1)
 *              y[t] = scale * table[token[t]] where the step gives a token id, the given row unchanged where it gives a
 *              row; plus position_table[position[t]].  Without a table every input must be a row.
 * RMS_NORM     in0 x [R, n]; in1 w [n] or NONE; out0 [R, n].  p0 f32 eps; p1 group width g (0 means n; g divides n)
 *              for each run of g elements: y = x / sqrt(mean(x^2) + eps) * w.  With g < n, w has g elements (per-head
 *              query/key norm).  Source: Zhang and Sennrich 2019.
 * LINEAR       in0 x [R, in]; in1 W [out, in]; in2 bias f32 [out] or NONE; in3, in4 reserved for a low-rank term (NONE)
 *              out0 [R, n].  p0 first row of W used (a view into a fused weight; n rows from there)
 *              y = W x + bias.  The bias is added last, in f32; row i of the view takes bias[p0 + i].
 * ROPE         in0 x [T, heads * head_dim]; out0 same.  p0 heads; p1 head_dim; p2 byte offset of a kvb_rope in the blob
 *              for pair i < pairs with angle a = position * frequency[i] (computed in double), c = magnitude * cos a,
 *              s = magnitude * sin a (rounded to f32):  (u, v) becomes (u c - v s, u s + v c), f32.
 *              pairs are (first + 2i, first + 2i + 1) for KVB_ROPE_ADJACENT, (first + i, first + i + pairs) for
 *              KVB_ROPE_HALVES; other elements are copied.  Source: Su et al. 2021.  All frequency scalings (linear,
 *              NTK, YaRN, per-dimension factors) are already in `frequency` and `magnitude`.
 * KV_STORE     in0 k [T, kv_heads * k_dim]; in1 v [T, kv_heads * v_dim] or NONE (latent cache: V is the first v_dim of
 *              each K row).  p0 cache layer.  Writes row t at position[t] of sequence_of[t], rounded to the cache type.
 * ATTENTION    in0 q [T, heads * k_dim]; in1 sinks f32 [heads] or NONE (optional); in2 ALiBi slopes f32 [heads] or NONE
 *              (optional); out0 [T, heads * v_dim].  p0 cache layer; p1 heads; p2 f32 scale; p3 f32 soft-cap c (0 = off,
 *              optional).  The window is that of the layer's cache group.
 *              query head h reads kv head h / (heads / kv_heads).  For token t of position P, over positions
 *              j in [max(0, P - window + 1), P] (window 0: from 0) of its own sequence:
 *              s_j = scale * (q . k_j); s_j = c tanh(s_j / c) if c; s_j += slope_h * (j - P);
 *              w = softmax(s) (a sink adds exp(sink_h) to the denominator);  y = sum_j w_j v_j.
 *              Reads the rows stored by this step's KV_STORE too. Content of other cells must never reach y.
 * GLU          in0 gate [R, n]; in1 up [R, n], or NONE: then in0 is [R, 2n], gate first; out0 [R, n].  p0 activation.
 *              y = act(gate) * up.  Source: Shazeer 2020.
 * ADD          in0 a [R, n]; in1 b [R, n]; out0 [R, n].  y = a + b
 * SELECT_ROWS  in0 x [T, n]; out0 [O, n].  y[o] = x[output_row[o]]
 *
 * Optional: program_check names the first one a backend cannot run.
 *
 * LAYER_NORM   in0 x [R, n]; in1 w [n] or NONE; in2 b [n] or NONE; out0 [R, n].  p0 eps
 *              y = (x - mean x) / sqrt(var x + eps) * w + b
 * ACTIVATION   in0 x; out0.  p0 activation.  y = act(x)
 * SCALE        in0 x; out0.  p0 f32 factor.  y = factor * x
 * SOFTCAP      in0 x; out0.  p0 f32 cap.  y = cap tanh(x / cap)
 * COPY_HEADS   in0 x [R, heads * a]; in1 previous content or NONE; out0 [R, heads * b].  p0 heads; p1 first source
 *              element in a head; p2 first target element; p3 count; p4 source heads (heads, or 1: broadcast)
 *              splits and joins parts of heads (latent attention); elements that nothing gives are 0; in1 may be out0
 * HEAD_LINEAR  in0 x [R, heads * in]; in1 W [heads][out, in]; out0 [R, heads * out].  p0 heads.  One matrix per head
 * MOE_ROUTE    in0 router scores [T, experts]; in1 selection bias f32 [experts] or NONE; out0 weights f32 [T, used];
 *              out1 ids [T, used] (KVB_TYPE_I32).  p0 experts; p1 used; p2 scoring (KVB_ROUTE_*); p3 f32 factor;
 *              p4 expert groups | groups used << 16 (0: no groups; the score of a group is the sum of its two largest).
 *              The `used` largest of score + bias, falling, ties to the lower id; weights are the scores without bias.
 * MOE_LINEAR   in0 x [T, in] (or depth = used: [T * used, in]); in1 W [experts][out, in]; in2 bias [experts][out] or
 *              NONE; in3 ids; out0 depth = used: [T * used, out]
 * MOE_SUM      in0 x depth = used; in1 weights [T, used]; out0 [T, n].  y[t] = sum over e of w[t, e] x[t, e], e rising
 * TOP_K        in0 scores [O, n]; out0 the k largest f32 [O, k]; out1 their ids.  p0 k.  Ties to the lower id; k = 1 is
 *              arg-max. The output buffer then holds [O, k] scores followed by [O, k] ids
 */
enum {
  KVB_OP_EMBED = 1,
  KVB_OP_RMS_NORM = 2,
  KVB_OP_LINEAR = 3,
  KVB_OP_ROPE = 4,
  KVB_OP_KV_STORE = 5,
  KVB_OP_ATTENTION = 6,
  KVB_OP_GLU = 7,
  KVB_OP_ADD = 8,
  KVB_OP_SELECT_ROWS = 9,
  KVB_OP_CORE_END = 10, /* not an op: ids below it are mandatory */

  KVB_OP_LAYER_NORM = 16,
  KVB_OP_ACTIVATION = 17,
  KVB_OP_SCALE = 18,
  KVB_OP_SOFTCAP = 19,
  KVB_OP_COPY_HEADS = 20,
  KVB_OP_HEAD_LINEAR = 21,
  KVB_OP_MOE_ROUTE = 22,
  KVB_OP_MOE_LINEAR = 23,
  KVB_OP_MOE_SUM = 24,
  KVB_OP_TOP_K = 25
};

/* act(x). gelu(x) = x Phi(x) with the normal distribution function; the tanh form is
 * x / 2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))). Source: Hendrycks and Gimpel 2016. */
enum {
  KVB_ACT_SILU = 1, /* x / (1 + exp(-x)) */
  KVB_ACT_GELU = 2,
  KVB_ACT_GELU_TANH = 3,
  KVB_ACT_RELU = 4
};

enum {
  KVB_ROUTE_SOFTMAX = 1,            /* softmax over all experts, weights as they are */
  KVB_ROUTE_SOFTMAX_NORMALIZED = 2, /* softmax, the chosen weights divided by their sum */
  KVB_ROUTE_SIGMOID = 3,
  KVB_ROUTE_SIGMOID_NORMALIZED = 4
};

/* Rotary parameters, in the program's blob at an offset that is a multiple of 8, followed by `pairs` doubles. */
enum { KVB_ROPE_ADJACENT = 1, KVB_ROPE_HALVES = 2 };
typedef struct kvb_rope {
  uint32_t pairing; /* KVB_ROPE_* */
  uint32_t first;   /* first rotated element of a head */
  uint32_t pairs;   /* rotated elements / 2 */
  float magnitude;  /* 1, or the attention factor of YaRN */
  /* double frequency[pairs] follows */
} kvb_rope;

/* ---- canonical groups ---------------------------------------------------------------------------------------------
 * Fusion is offered, not discovered: the runtime marks these runs of ops. Members are adjacent and in this order; ops in
 * brackets may be missing. A backend may run a group as one kernel or ignore it; the result must be the same bits as far
 * as the backend promises bits, and within its bounds otherwise. A value written inside a group and read by no op
 * outside of it need not exist. */
enum {
  KVB_GROUP_NORM_QKV = 1,   /* [RMS_NORM] LINEAR(q) LINEAR(k) LINEAR(v) */
  KVB_GROUP_ROPE_STORE = 2, /* [RMS_NORM(q)] [RMS_NORM(k)] [ROPE(q)] [ROPE(k)] KV_STORE */
  KVB_GROUP_ATTENTION = 3,  /* ATTENTION [LINEAR(o)] [ADD] */
  KVB_GROUP_NORM_FFN = 4,   /* [RMS_NORM] LINEAR(gate) LINEAR(up) GLU */
  KVB_GROUP_DOWN = 5,       /* LINEAR(down) [ADD] */
  KVB_GROUP_LOGITS = 6      /* SELECT_ROWS [RMS_NORM] [LINEAR] */
};

#ifdef __cplusplus
}
#endif

#endif /* KVASIR_OPS_H */
