#include "engine/model/model.h"
#include "engine/base/inifile.h"
#include "engine/base/random.h"
#include "engine/base/text.h"
#include "engine/model/builtin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void model_free(struct model *model) {
    if (!model)
        return;
    free(model->source);
    free(model->layers);
    free(model->ops);
    free(model->parameters);
    free(model->segments);
    free(model);
}

const char *model_builtin(int i) {
    for (int k = 0; model_builtins[k].name; k++)
        if (k == i)
            return model_builtins[k].name;
    return NULL;
}

static enum status no_such_model(const char *name) {
    enum { MOST = 32 };
    const char *names[MOST];
    char list[512];
    int count = 0;
    for (; count < MOST && model_builtins[count].name; count++)
        names[count] = model_builtins[count].name;
    text_list(list, sizeof list, names, count);
    const char *near = text_near(name, names, count);
    return status_fail(STATUS_NOT_FOUND,
                       "no model is called \"%s\"%s%s%s There are %s; a file's path ends in .ini", name,
                       near ? ": did you mean " : ".", near ? near : "", near ? "?" : "", list);
}

enum status model_read(const char *name_or_path, struct model_ends ends, double weight_decay_override,
                       struct model **out) {
    *out = NULL;
    for (int i = 0; model_builtins[i].name; i++)
        if (strcmp(name_or_path, model_builtins[i].name) == 0) {
            char file[MODEL_NAME_MAX + 8];
            snprintf(file, sizeof file, "%s.ini", name_or_path);
            return model_parse(file, model_builtins[i].text, ends, weight_decay_override, out);
        }
    size_t length = strlen(name_or_path);
    bool is_path =
        strchr(name_or_path, '/') || (length > 4 && strcmp(name_or_path + length - 4, ".ini") == 0);
    if (!is_path)
        return no_such_model(name_or_path);
    char *text;
    STATUS_TRY(inifile_load(name_or_path, &text));
    enum status status = model_parse(name_or_path, text, ends, weight_decay_override, out);
    free(text);
    return status;
}

void model_initialise(const struct model *model, uint64_t seed, float *out) {
    memset(out, 0, model->flat_count * sizeof *out);
    for (int i = 0; i < model->parameter_count; i++) {
        const struct model_parameter *parameter = &model->parameters[i];
        float *values = out + parameter->offset;
        struct random r = random_begin(seed, RANDOM_INITIAL_WEIGHTS, (uint64_t)i);
        for (size_t k = 0; k < parameter->count; k++)
            values[k] = (float)(parameter->is_bias ? parameter->constant
                                                   : parameter->deviation * random_truncated_normal(&r));
    }
}
