/** The form that has another model answer. */
export const otherModelMessages = {
  "other-model.title": "Another model",
  "other-model.introduction":
    "The question is answered anew by the model that you choose, in the same reply.",
  "other-model.field": "Model",
  "other-model.description": "This answer is by {model}.",
  "other-model.placeholder": "A model's name, or a part of it",
  "other-model.submit": "Answer anew",
  "other-model.none": "There is no other model that could answer this.",
  "other-model.missing": "Choose a model, or cancel.",
  "other-model.several": "Several models have that in their names: {models}. Write one of them.",
  "other-model.unfit.pictures":
    "{model} does not take pictures, and there are some here. Choose another model.",
  "other-model.unfit.chat": "{model} does not answer questions. Choose another model.",
  "other-model.unfit.same": "{model} has made this answer. For another one by the same model use Regenerate.",
} as const;
