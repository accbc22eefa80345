DROP TRIGGER run_texts_of_kwargs;
DROP TRIGGER run_texts_of_recipe;
CREATE TRIGGER run_texts_of_kwargs AFTER UPDATE OF kwargs_json ON runs
WHEN OLD.kwargs_json = '{ }' AND NEW.kwargs_json <> '{ }'
BEGIN
    DELETE FROM run_text_parts WHERE run_id = OLD.run_id AND column_name = 'kwargs_json';
END;
CREATE TRIGGER run_texts_of_recipe AFTER UPDATE OF recipe_json ON runs
WHEN OLD.recipe_json = '{ }' AND NEW.recipe_json IS NOT '{ }'
BEGIN
    DELETE FROM run_text_parts WHERE run_id = OLD.run_id AND column_name = 'recipe_json';
END;
