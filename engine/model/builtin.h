/* The model files that come with the program; the table is made from engine/model/models by embed.sh. */
#ifndef TOWERSCOPE_ENGINE_MODEL_BUILTIN_H
#define TOWERSCOPE_ENGINE_MODEL_BUILTIN_H

struct model_builtin {
    const char *name, *text;
};

/* Ends with a NULL name. */
extern const struct model_builtin model_builtins[];

#endif
