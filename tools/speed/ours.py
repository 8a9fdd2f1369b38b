"""Our contestants for `--to-error`: on-line training by each recipe."""

from __future__ import annotations

from functools import partial

from mlpcore.training import Trainer, TrainingConfig
from mlpcore.training.recipes import RECIPES, Recipe
from speed.lesson import Contestant, Lesson, Trained


def train_recipe(lesson: Lesson, rate: float, recipe: Recipe) -> Trained:
    """Trains by a recipe; the time is the trainer's own account, without its evaluations."""
    backend = lesson.backend
    config = TrainingConfig(
        hidden_layers=lesson.hidden,
        epochs=lesson.epochs,
        seed=lesson.seed,
        deformation=lesson.deformation,
        backend=backend.name,
        schedule=backend.schedule,
        **recipe.settings_of(lesson.hidden),
    )
    trainer = Trainer(config, lesson.data, backend)
    trainer.run()
    seconds = sum(m.deformation_seconds + m.training_seconds for m in trainer.state.history)
    return Trained(trainer.state.network, seconds, config.input_range)


def _text(recipe: Recipe) -> str:
    config = TrainingConfig(**recipe.settings)
    rate = f"rate {config.learning_rate:g}"
    return f"{config.activation}, {config.loss}, on-line, {rate}, {config.decay}"


OURS = tuple(
    Contestant(f"ours {name}", _text(recipe), partial(train_recipe, recipe=recipe))
    for name, recipe in RECIPES.items()
)
