// A simulated cuDNN over the simulated streams, built against the real header: the backend interface as
// conv.c, cudnn_graph.c and engines.c use it, for graphs of one convolution with bias and ReLU behind it.
//
// Its engines are those that a program has to know how to choose from: ones that round, that may give other
// bytes each time, that are compiled first, that want too much memory, that can't be built, that can't be
// run. Whoever takes one that was not wished for computes something wrong, or is counted.
#include "tests/cudasim/control.h"
#include "tests/cudasim/fake.h"
#include "tests/cudasim/memory.h"
#include "tests/cudasim/values.h"

#include <cudnn.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <vector>

using namespace cudasim;

struct cudnnContext {
    int gpu;
    cudaStream_t stream;
    void *memory;
};

namespace {

struct Engine {
    int64_t number;
    std::vector<cudnnBackendNumericalNote_t> numerical;
    std::vector<cudnnBackendBehaviorNote_t> behaviour;
    int64_t workspace;
    bool builds, runs;
    int pieces; // of work: how long it takes
    bool wrong;
    std::vector<std::pair<cudnnBackendKnobType_t, int64_t>> knobs;
};

// In the order in which the heuristics name them.
const Engine engines[] = {
    {10,
     {CUDNN_NUMERICAL_NOTE_TENSOR_CORE, CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS},
     {},
     256,
     true,
     true,
     1,
     false,
     {}},
    {11, {}, {CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION}, 0, true, true, 1, true, {}},
    {12, {CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC}, {}, 0, true, true, 4, false, {}},
    {13, {}, {}, int64_t(1) << 40, true, true, 1, true, {}},
    {14, {}, {}, 0, false, true, 1, true, {}},
    {15, {CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION}, {}, 0, true, true, 1, true, {}},
    {17, {}, {}, 512, true, true, 2, false, {{CUDNN_KNOB_TYPE_TILE_SIZE, 3}, {CUDNN_KNOB_TYPE_SPLIT_K, 2}}},
    {16, {}, {}, 0, true, false, 1, true, {}}, // not among the first, so that it is never taken unmeasured
    {18, {CUDNN_NUMERICAL_NOTE_FFT}, {}, 0, true, true, 1, false, {}},
};

struct Node;
using Part = std::shared_ptr<Node>;

// What a descriptor says. Others that it was put into keep it, whatever becomes of the descriptor.
struct Node {
    cudnnBackendDescriptorType_t type;
    bool done = false;
    std::map<int, std::vector<char>> values;
    std::map<int, std::vector<Part>> parts;
    const Engine *engine = nullptr;

    explicit Node(cudnnBackendDescriptorType_t t) : type(t) {}
    template <class T> std::vector<T> all(int name) const {
        auto at = values.find(name);
        std::vector<T> out(at == values.end() ? 0 : at->second.size() / sizeof(T));
        if (!out.empty())
            memcpy(out.data(), at->second.data(), out.size() * sizeof(T));
        return out;
    }
    template <class T> T one(int name) const {
        std::vector<T> found = all<T>(name);
        return found.size() == 1 ? found[0] : T();
    }
    Part part(int name) const {
        auto at = parts.find(name);
        return at == parts.end() || at->second.empty() ? nullptr : at->second[0];
    }
};

struct Descriptor {
    Part node;
};

std::set<Descriptor *> living;
char last_words[256];
long odd_runs;

cudnnStatus_t refuse(cudnnStatus_t status, const char *words) {
    snprintf(last_words, sizeof last_words, "%s", words);
    return status;
}

Part &node_of(cudnnBackendDescriptor_t handle) {
    auto *d = static_cast<Descriptor *>(handle);
    if (!living.count(d))
        die("a descriptor of cuDNN is used that is not there (any more)");
    return d->node;
}

size_t size_of(cudnnBackendAttributeType_t type) {
    switch (type) {
    case CUDNN_TYPE_HANDLE:
    case CUDNN_TYPE_VOID_PTR:
    case CUDNN_TYPE_INT64:
    case CUDNN_TYPE_DOUBLE:
        return 8;
    case CUDNN_TYPE_BOOLEAN:
    case CUDNN_TYPE_CHAR:
        return 1;
    default: // enumerations and floats
        return 4;
    }
}

// ---- what a graph says

// The names of a pass, as cudnn_graph.c has them.
struct Pass {
    cudnnBackendDescriptorType_t type;
    int alpha, beta, convolution, weights, x, z;
};
const Pass passes[] = {
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY}};

const Pass *pass_of(const Node &operation) {
    for (const Pass &pass : passes)
        if (pass.type == operation.type)
            return &pass;
    return nullptr;
}

bool is_virtual(const Node &tensor) {
    return tensor.one<char>(CUDNN_ATTR_TENSOR_IS_VIRTUAL);
}

// A tensor of four dimensions in memory.
struct Tensor {
    int64_t id = 0, dims[4] = {}, strides[4] = {}, alignment = 1;
    cuda_type type = CUDA_TYPE_F32;

    Tensor() = default;
    explicit Tensor(const Node &node) {
        std::vector<int64_t> d = node.all<int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS),
                             s = node.all<int64_t>(CUDNN_ATTR_TENSOR_STRIDES);
        memcpy(dims, d.data(), sizeof dims);
        memcpy(strides, s.data(), sizeof strides);
        id = node.one<int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID);
        alignment = node.one<int64_t>(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT);
        type = node.one<cudnnDataType_t>(CUDNN_ATTR_TENSOR_DATA_TYPE) == CUDNN_DATA_BFLOAT16 ? CUDA_TYPE_BF16
                                                                                             : CUDA_TYPE_F32;
    }
    size_t at(int64_t a, int64_t b, int64_t c, int64_t d) const {
        return size_t(a * strides[0] + b * strides[1] + c * strides[2] + d * strides[3]);
    }
    size_t bytes() const { return size_t(dims[0] * dims[1] * dims[2] * dims[3]) * cuda_type_bytes(type); }
};

// The whole graph: a convolution, and maybe a bias and a ReLU.
struct Convolution {
    const Pass *pass = nullptr;
    Tensor x, weights, z, bias;
    int64_t before[2] = {}, stride[2] = {};
    bool adds = false, relu = false, keeps_nan = false;
};

bool read_graph(const Node &graph, Convolution *out) {
    auto found = graph.parts.find(CUDNN_ATTR_OPERATIONGRAPH_OPS);
    if (found == graph.parts.end() || found->second.empty() || !pass_of(*found->second[0]))
        return false;
    const std::vector<Part> &operations = found->second;
    const Node &first = *operations[0];
    const Pass &pass = *(out->pass = pass_of(first));
    const Node &convolution = *first.part(pass.convolution);
    out->x = Tensor(*first.part(pass.x));
    out->weights = Tensor(*first.part(pass.weights));
    memcpy(out->before, convolution.all<int64_t>(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS).data(), 16);
    memcpy(out->stride, convolution.all<int64_t>(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES).data(), 16);
    Part z = first.part(pass.z);
    for (size_t i = 1; i < operations.size(); i++) {
        const Node &pointwise = *operations[i];
        auto mode = pointwise.part(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR)
                        ->one<cudnnPointwiseMode_t>(CUDNN_ATTR_POINTWISE_MODE);
        if (pointwise.part(CUDNN_ATTR_OPERATION_POINTWISE_XDESC) != z || !is_virtual(*z))
            return false; // they hang together by what is in no memory
        if (mode == CUDNN_POINTWISE_ADD) {
            out->bias = Tensor(*pointwise.part(CUDNN_ATTR_OPERATION_POINTWISE_BDESC));
            out->adds = true;
        }
        if (mode == CUDNN_POINTWISE_RELU_FWD) {
            out->relu = true;
            out->keeps_nan =
                pointwise.part(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR)
                    ->one<cudnnNanPropagation_t>(CUDNN_ATTR_POINTWISE_NAN_PROPAGATION) == CUDNN_PROPAGATE_NAN;
        }
        z = pointwise.part(CUDNN_ATTR_OPERATION_POINTWISE_YDESC);
    }
    out->z = Tensor(*z);
    return !is_virtual(*z);
}

// The sizes of a convolution's tensors hang together.
bool shapes_fit(const Node &operation) {
    const Pass &pass = *pass_of(operation);
    Part c = operation.part(pass.convolution), x = operation.part(pass.x), w = operation.part(pass.weights),
         z = operation.part(pass.z);
    if (!c || !x || !w || !z || operation.one<float>(pass.alpha) != 1 || operation.one<float>(pass.beta) != 0)
        return false;
    Tensor tx(*x), tw(*w), tz(*z);
    std::vector<int64_t> before = c->all<int64_t>(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS),
                         after = c->all<int64_t>(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS),
                         stride = c->all<int64_t>(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES);
    bool fit = tx.dims[0] == tz.dims[0] && tx.dims[1] == tw.dims[1] && tz.dims[1] == tw.dims[0];
    for (size_t i = 0; i < 2; i++)
        fit =
            fit && tz.dims[2 + i] == (tx.dims[2 + i] + before[i] + after[i] - tw.dims[2 + i]) / stride[i] + 1;
    return fit;
}

// ---- which engines there are. Of windows of three by three none takes bias and ReLU along, and those of
// five by five are known to the fallback alone.

std::vector<const Engine *> heuristics(const Convolution &c, cudnnBackendHeurMode_t mode) {
    std::vector<const Engine *> out;
    if ((c.adds || c.relu) && c.weights.dims[2] == 3)
        return out;
    if ((mode == CUDNN_HEUR_MODE_FALLBACK) != (c.weights.dims[2] == 5))
        return out;
    for (const Engine &e : engines)
        out.push_back(&e);
    return out;
}

bool has(const std::vector<const Engine *> &list, int64_t number) {
    for (const Engine *e : list)
        if (e->number == number)
            return true;
    return false;
}

const Engine *engine_of(const Convolution &c, int64_t number) {
    for (const Engine &e : engines)
        if (e.number == number && (has(heuristics(c, CUDNN_HEUR_MODE_A), number) ||
                                   has(heuristics(c, CUDNN_HEUR_MODE_FALLBACK), number)))
            return &e;
    return nullptr;
}

Part engine_node(const Part &graph, const Engine *engine) {
    auto node = std::make_shared<Node>(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
    node->parts[CUDNN_ATTR_ENGINE_OPERATION_GRAPH] = {graph};
    node->engine = engine;
    node->done = true;
    return node;
}

Part configuration_node(const Part &graph, const Engine *engine) {
    auto node = std::make_shared<Node>(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    node->parts[CUDNN_ATTR_ENGINECFG_ENGINE] = {engine_node(graph, engine)};
    for (auto [type, value] : engine->knobs) {
        auto knob = std::make_shared<Node>(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR);
        knob->values[CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE].assign(reinterpret_cast<const char *>(&type),
                                                              reinterpret_cast<const char *>(&type + 1));
        knob->values[CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE].assign(reinterpret_cast<const char *>(&value),
                                                               reinterpret_cast<const char *>(&value + 1));
        knob->done = true;
        node->parts[CUDNN_ATTR_ENGINECFG_KNOB_CHOICES].push_back(knob);
    }
    node->done = true;
    return node;
}

// Set as the heuristics set them, whoever sets them.
bool knobs_fit(const Node &configuration, const Engine &engine) {
    auto at = configuration.parts.find(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES);
    size_t count = at == configuration.parts.end() ? 0 : at->second.size();
    bool fit = count == engine.knobs.size();
    for (size_t i = 0; fit && i < count; i++)
        fit = at->second[i]->one<cudnnBackendKnobType_t>(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE) ==
                  engine.knobs[i].first &&
              at->second[i]->one<int64_t>(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE) == engine.knobs[i].second;
    return fit;
}

// ---- computing

struct Addresses {
    void *x, *weights, *z, *bias;
};

// Every product: visit(place of x, of the weight, of z) with the channels of each 0.
template <class Visit> void products(const Convolution &c, Visit visit) {
    for (int64_t n = 0; n < c.x.dims[0]; n++)
        for (int64_t i = 0; i < c.z.dims[2]; i++)
            for (int64_t j = 0; j < c.z.dims[3]; j++)
                for (int64_t u = 0; u < c.weights.dims[2]; u++)
                    for (int64_t v = 0; v < c.weights.dims[3]; v++) {
                        int64_t row = i * c.stride[0] + u - c.before[0],
                                column = j * c.stride[1] + v - c.before[1];
                        if (row >= 0 && row < c.x.dims[2] && column >= 0 && column < c.x.dims[3])
                            visit(c.x.at(n, 0, row, column), c.weights.at(0, 0, u, v), c.z.at(n, 0, i, j));
                    }
}

void compute(const Convolution &c, const Addresses &a, const Engine &engine) {
    values x(a.x, c.x.type), weights(a.weights, c.weights.type), z(a.z, c.z.type), bias(a.bias, c.bias.type);
    bool tf32 = engine.number == engines[0].number;
    const Tensor &out = c.pass == &passes[0] ? c.z : c.pass == &passes[1] ? c.x : c.weights;
    const values &to = c.pass == &passes[0] ? z : c.pass == &passes[1] ? x : weights;
    std::vector<double> sum(out.bytes() / cuda_type_bytes(out.type));
    int64_t ins = c.x.dims[1], outs = c.z.dims[1];
    products(c, [&](size_t at_x, size_t at_w, size_t at_z) {
        for (int64_t o = 0; o < outs; o++)
            for (int64_t i = 0; i < ins; i++) {
                size_t px = at_x + size_t(i * c.x.strides[1]), pz = at_z + size_t(o * c.z.strides[1]),
                       pw = at_w + size_t(o * c.weights.strides[0] + i * c.weights.strides[1]);
                if (c.pass == &passes[0])
                    sum[pz] += factor(x.get(px), tf32) * factor(weights.get(pw), tf32);
                else if (c.pass == &passes[1])
                    sum[px] += factor(z.get(pz), tf32) * factor(weights.get(pw), tf32);
                else
                    sum[pw] += factor(x.get(px), tf32) * factor(z.get(pz), tf32);
            }
    });
    for (size_t i = 0; i < sum.size(); i++) { // z of a bias: the channel is the fastest
        double value = sum[i] + (c.adds ? bias.get(i % size_t(outs)) : 0);
        if (c.relu && !(value > 0) && !(c.keeps_nan && std::isnan(value))) // a NaN becomes 0 unless told
            value = 0;
        to.set(i, engine.wrong ? value + 1 : value);
    }
}

// Hand out a list; as much as there is room for, and how many there are.
template <class T> cudnnStatus_t give(const std::vector<T> &list, int64_t room, int64_t *count, void *out) {
    *count = int64_t(list.size());
    for (int64_t i = 0; i < room && i < *count; i++)
        static_cast<T *>(out)[i] = list[size_t(i)];
    return CUDNN_STATUS_SUCCESS;
}

// Into descriptors that the caller has made.
cudnnStatus_t give_parts(const std::vector<Part> &list, int64_t room, int64_t *count, void *out) {
    *count = int64_t(list.size());
    for (int64_t i = 0; i < room && i < *count; i++) {
        Part &to = node_of(static_cast<cudnnBackendDescriptor_t *>(out)[i]);
        if (to->type != list[size_t(i)]->type)
            return refuse(CUDNN_STATUS_BAD_PARAM, "a descriptor of another type");
        to = list[size_t(i)];
    }
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t may_allocate() {
    void *own;
    if (cudaMalloc(&own, 64) != cudaSuccess)
        return refuse(CUDNN_STATUS_ALLOC_FAILED, "no memory, or not while a stream is captured (simulated)");
    (void)cudaFree(own);
    return CUDNN_STATUS_SUCCESS;
}

} // namespace

bool cudasim::cudnn_clean() {
    return living.empty();
}

extern "C" {

long cudasim_odd_engines(void) {
    return odd_runs;
}

// ---- handles

size_t cudnnGetVersion(void) {
    return CUDNN_VERSION;
}

const char *cudnnGetErrorString(cudnnStatus_t status) {
    switch (status) {
    case CUDNN_STATUS_SUCCESS:
        return "no error";
    case CUDNN_STATUS_NOT_SUPPORTED:
        return "CUDNN_STATUS_NOT_SUPPORTED (simulated)";
    case CUDNN_STATUS_BAD_PARAM:
        return "CUDNN_STATUS_BAD_PARAM (simulated)";
    case CUDNN_STATUS_ALLOC_FAILED:
        return "CUDNN_STATUS_ALLOC_FAILED (simulated)";
    case CUDNN_STATUS_EXECUTION_FAILED:
        return "CUDNN_STATUS_EXECUTION_FAILED (simulated)";
    default:
        return "an error of the simulation";
    }
}

void cudnnGetLastErrorString(char *message, size_t size) {
    snprintf(message, size, "%s", last_words);
    *last_words = 0;
}

cudnnStatus_t cudnnCreate(cudnnHandle_t *out) {
    int gpu;
    void *memory;
    *out = nullptr;
    if (cudaGetDevice(&gpu) != cudaSuccess || cudaMalloc(&memory, 256) != cudaSuccess)
        return refuse(CUDNN_STATUS_ALLOC_FAILED, "no memory for a handle (simulated)");
    *out = new cudnnContext{gpu, nullptr, memory};
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
    (void)cudaFree(handle->memory);
    delete handle;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
    if (gpu_of(stream) != handle->gpu)
        return refuse(CUDNN_STATUS_BAD_PARAM, "another GPU's stream");
    handle->stream = stream;
    return CUDNN_STATUS_SUCCESS;
}

// ---- descriptors

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t *out) {
    auto *d = new Descriptor{std::make_shared<Node>(type)};
    living.insert(d);
    *out = d;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t handle) {
    if (!handle)
        return refuse(CUDNN_STATUS_BAD_PARAM, "no descriptor");
    (void)node_of(handle);
    living.erase(static_cast<Descriptor *>(handle));
    delete static_cast<Descriptor *>(handle);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t handle, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t count,
                                       const void *elements) {
    Part &node = node_of(handle);
    if (node->done || count < 1)
        return refuse(CUDNN_STATUS_BAD_PARAM, "set behind finalize, or nothing");
    if (type != CUDNN_TYPE_BACKEND_DESCRIPTOR) {
        auto *bytes = static_cast<const char *>(elements);
        node->values[name].assign(bytes, bytes + size_t(count) * size_of(type));
        return CUDNN_STATUS_SUCCESS;
    }
    std::vector<Part> parts;
    for (int64_t i = 0; i < count; i++) {
        parts.push_back(node_of(static_cast<const cudnnBackendDescriptor_t *>(elements)[i]));
        if (!parts.back()->done)
            return refuse(CUDNN_STATUS_BAD_PARAM, "a part that is not finalized");
    }
    node->parts[name] = parts;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t handle) {
    Part &node = node_of(handle);
    Convolution c;
    bool good = true;
    switch (node->type) {
    case CUDNN_BACKEND_TENSOR_DESCRIPTOR:
        good = node->all<int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS).size() == 4 &&
               node->all<int64_t>(CUDNN_ATTR_TENSOR_STRIDES).size() == 4 &&
               node->all<int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID).size() == 1 &&
               node->one<int64_t>(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT) >= 4;
        break;
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR:
        good = shapes_fit(*node);
        break;
    case CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR:
        good = read_graph(*node, &c) && node->one<cudnnHandle_t>(CUDNN_ATTR_OPERATIONGRAPH_HANDLE);
        break;
    case CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR:
        good = node->part(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH) != nullptr;
        if (good && read_graph(*node->part(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH), &c) &&
            heuristics(c, node->one<cudnnBackendHeurMode_t>(CUDNN_ATTR_ENGINEHEUR_MODE)).empty())
            return refuse(CUDNN_STATUS_NOT_SUPPORTED, "no engine for this");
        break;
    case CUDNN_BACKEND_ENGINE_DESCRIPTOR:
        good = node->part(CUDNN_ATTR_ENGINE_OPERATION_GRAPH) &&
               read_graph(*node->part(CUDNN_ATTR_ENGINE_OPERATION_GRAPH), &c);
        node->engine = good ? engine_of(c, node->one<int64_t>(CUDNN_ATTR_ENGINE_GLOBAL_INDEX)) : nullptr;
        if (good && !node->engine)
            return refuse(CUDNN_STATUS_NOT_SUPPORTED, "not that engine for this");
        break;
    case CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR: {
        Part configuration = node->part(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
        good = configuration && node->one<cudnnHandle_t>(CUDNN_ATTR_EXECUTION_PLAN_HANDLE);
        if (!good)
            break;
        node->engine = configuration->part(CUDNN_ATTR_ENGINECFG_ENGINE)->engine;
        cudnnStatus_t status = may_allocate();
        if (status != CUDNN_STATUS_SUCCESS)
            return status;
        if (!node->engine->builds || !knobs_fit(*configuration, *node->engine))
            return refuse(CUDNN_STATUS_NOT_SUPPORTED, "this engine can't, or not with its knobs so");
        break;
    }
    default:
        break;
    }
    if (!good)
        return refuse(CUDNN_STATUS_BAD_PARAM, "something is missing, or does not fit together");
    node->done = true;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t handle, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t, int64_t room, int64_t *count, void *out) {
    Part node = node_of(handle);
    if (!node->done)
        return refuse(CUDNN_STATUS_BAD_PARAM, "read before finalize");
    switch (name) {
    case CUDNN_ATTR_ENGINEHEUR_RESULTS: {
        Part graph = node->part(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
        std::vector<Part> found;
        Convolution c;
        (void)read_graph(*graph, &c);
        for (const Engine *e : heuristics(c, node->one<cudnnBackendHeurMode_t>(CUDNN_ATTR_ENGINEHEUR_MODE)))
            found.push_back(configuration_node(graph, e));
        return give_parts(found, room, count, out);
    }
    case CUDNN_ATTR_ENGINECFG_ENGINE:
    case CUDNN_ATTR_ENGINECFG_KNOB_CHOICES:
        return give_parts(node->parts[name], room, count, out);
    case CUDNN_ATTR_ENGINE_GLOBAL_INDEX:
        return give(std::vector<int64_t>{node->engine->number}, room, count, out);
    case CUDNN_ATTR_ENGINE_NUMERICAL_NOTE:
        return give(node->engine->numerical, room, count, out);
    case CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE:
        return give(node->engine->behaviour, room, count, out);
    case CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE:
        return give(node->all<cudnnBackendKnobType_t>(name), room, count, out);
    case CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE:
        return give(node->all<int64_t>(name), room, count, out);
    case CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE:
        return give(std::vector<int64_t>{node->engine->workspace}, room, count, out);
    default:
        return refuse(CUDNN_STATUS_BAD_PARAM, "not an attribute that is simulated");
    }
}

// ---- execution

// The address of a tensor among those of a call: there, aligned, on the GPU, and apart from the workspace.
static bool find(const Node &pack, const Tensor &tensor, int gpu, void **out) {
    std::vector<int64_t> ids = pack.all<int64_t>(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
    std::vector<void *> addresses = pack.all<void *>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
    *out = nullptr;
    for (size_t i = 0; i < ids.size() && i < addresses.size(); i++)
        if (ids[i] == tensor.id && !*out)
            *out = addresses[i];
    return *out && memory_gpu(*out) == gpu &&
           reinterpret_cast<uintptr_t>(*out) % size_t(tensor.alignment) == 0;
}

static bool apart(const void *workspace, int64_t size, const void *at, const Tensor &tensor) {
    auto *w = static_cast<const char *>(workspace), *t = static_cast<const char *>(at);
    return !size || w + size <= t || t + tensor.bytes() <= w;
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan_handle,
                                  cudnnBackendDescriptor_t pack_handle) {
    Part plan = node_of(plan_handle), pack = node_of(pack_handle);
    if (!plan->done || !pack->done ||
        plan->one<cudnnHandle_t>(CUDNN_ATTR_EXECUTION_PLAN_HANDLE)->gpu != handle->gpu)
        return refuse(CUDNN_STATUS_BAD_PARAM, "a plan that is not finalized, or another GPU's");
    Part configuration = plan->part(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
    Convolution c;
    Addresses a = {};
    const Engine &engine = *plan->engine;
    void *workspace = pack->one<void *>(CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
    (void)read_graph(
        *configuration->part(CUDNN_ATTR_ENGINECFG_ENGINE)->part(CUDNN_ATTR_ENGINE_OPERATION_GRAPH), &c);
    if (!find(*pack, c.x, handle->gpu, &a.x) || !find(*pack, c.weights, handle->gpu, &a.weights) ||
        !find(*pack, c.z, handle->gpu, &a.z) || (c.adds && !find(*pack, c.bias, handle->gpu, &a.bias)) ||
        pack->all<int64_t>(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS).size() != size_t(3 + c.adds))
        return refuse(CUDNN_STATUS_BAD_PARAM,
                      "a tensor is missing, of no use, not aligned, or not on this GPU");
    if (engine.workspace && memory_gpu(workspace) != handle->gpu)
        return refuse(CUDNN_STATUS_BAD_PARAM, "no workspace");
    if (!apart(workspace, engine.workspace, a.x, c.x) ||
        !apart(workspace, engine.workspace, a.weights, c.weights) ||
        !apart(workspace, engine.workspace, a.z, c.z) ||
        (c.adds && !apart(workspace, engine.workspace, a.bias, c.bias)))
        die("a tensor lies in cuDNN's workspace");
    if (!engine.runs)
        return refuse(CUDNN_STATUS_EXECUTION_FAILED, "this engine never runs");
    library call = library_call(handle->stream);
    if (call != library::GOES_ON)
        return call == library::REFUSED ? CUDNN_STATUS_EXECUTION_FAILED : CUDNN_STATUS_SUCCESS;
    odd_runs += !engine.numerical.empty() && engine.numerical[0] == CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC;
    cudaError_t error = cudaSuccess;
    for (int i = 1; i < engine.pieces && error == cudaSuccess; i++)
        error = enqueue(handle->stream, "a slower convolution", [] {});
    if (error == cudaSuccess)
        error = enqueue(handle->stream, "convolution", [=] {
            if (engine.workspace)
                memset(workspace, 0xA5, size_t(engine.workspace));
            compute(c, a, engine);
        });
    return error == cudaSuccess ? CUDNN_STATUS_SUCCESS
                                : refuse(CUDNN_STATUS_EXECUTION_FAILED, cudaGetErrorString(error));
}

} // extern "C"
